"""Measure what a retriever finds: judgments and runs, measures with intervals, comparisons and sweeps.

Importing this package loads numpy and nothing heavier; pandas, ir-measures, scipy and matplotlib come when they are
first needed (``pip install "memlab[eval]"``).
"""

# The functions are named like their modules, so they are imported here and now: a name that came later would be hidden
# by the module of the same name.
from memlab.evaluation.ablate import ablate
from memlab.evaluation.articles import vector_recall
from memlab.evaluation.cache import build_store
from memlab.evaluation.compare import compare
from memlab.evaluation.comparison import Comparison
from memlab.evaluation.encoders import EncoderComparison, compare_encoders
from memlab.evaluation.evaluate import Evaluation, evaluate
from memlab.evaluation.folders import LabelledSet, read_folder, write_folder
from memlab.evaluation.judgments import Qrels
from memlab.evaluation.measures import DEFAULT_MEASURES
from memlab.evaluation.precisions import PrecisionComparison, RoundedVectorChannel, compare_precisions
from memlab.evaluation.queries import LabelledQuery, queries_of
from memlab.evaluation.recency import measure_recency
from memlab.evaluation.recency_study import RecencyStudy
from memlab.evaluation.runs import Run
from memlab.evaluation.sweep import Sweep, sweep

__all__ = [
    "DEFAULT_MEASURES",
    "Comparison",
    "EncoderComparison",
    "Evaluation",
    "LabelledQuery",
    "LabelledSet",
    "PrecisionComparison",
    "Qrels",
    "RecencyStudy",
    "RoundedVectorChannel",
    "Run",
    "Sweep",
    "ablate",
    "build_store",
    "compare",
    "compare_encoders",
    "compare_precisions",
    "evaluate",
    "measure_recency",
    "queries_of",
    "read_folder",
    "sweep",
    "vector_recall",
    "write_folder",
]
