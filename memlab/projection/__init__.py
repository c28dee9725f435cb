"""The vectors of a store as a picture: two dimensions, how faithful they are, and what the full space says itself."""

from memlab.projection.clusters import Clusters, clusters
from memlab.projection.columns import COLUMNS, Column, columns
from memlab.projection.faithfulness import Faithfulness, faithfulness
from memlab.projection.landing import Landing, land
from memlab.projection.projecting import Projection, project
from memlab.projection.similar import duplicates, outliers
from memlab.projection.space import VectorSpace

__all__ = [
    "COLUMNS",
    "Clusters",
    "Column",
    "Faithfulness",
    "Landing",
    "Projection",
    "VectorSpace",
    "clusters",
    "columns",
    "duplicates",
    "faithfulness",
    "land",
    "outliers",
    "project",
]
