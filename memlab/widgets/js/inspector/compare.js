// Two settings side by side: the hits of A, the hits of B, and between them a line for every move.

const ROW = 54; // px; rows are all of one height, so that the lines need no measuring
const GAP = 64;

function comparison({ hello, open }) {
  const { palette } = hello;
  const node = h("div", { class: "in-compare" });

  const draw = (results, selected) => {
    const moves = new Map(results.moves.map(([id, a, b]) => [id, { a, b }]));
    const column = (name) => {
      const side = results[name];
      return h(
        "div",
        { class: "in-side" },
        h("h4", {}, h("span", { class: "in-side-name" }, name.toUpperCase()), h("span", { class: "ml-quiet" }, title(side))),
        h(
          "ol",
          { class: "in-short", "aria-label": `Hits of ${name.toUpperCase()}` },
          side.hits.map((hit) => shortRow(hit, side, name, moves.get(hit.id), selected)),
        ),
        side.none ? h("p", { class: "in-none" }, side.none) : null,
      );
    };
    replaceKeeping(node, [column("a"), lines(results, moves), column("b")]);
  };

  const title = (side) => [side.fusion, side.recency ? "recency" : ""].filter(Boolean).join(" + ");

  const shortRow = (hit, side, name, move, selected) =>
    h(
      "li",
      { style: { height: `${ROW}px` } },
      h(
        "button",
        {
          type: "button",
          class: "in-short-row",
          "data-key": `${name} ${hit.id}`,
          "data-open": selected?.id === hit.id,
          onclick: () => open(hit.id, name),
          title: hit.excerpt.map((piece) => piece.text).join(""),
        },
        h("span", { class: "in-rank" }, hit.rank),
        h("span", { class: "in-short-text" }, textOf(hit.excerpt)),
        h("span", { class: "in-short-bar" }, bar(hit, palette, side.top), h("span", { class: "in-score" }, figure(hit.score, 3)), moved(name, move)),
      ),
    );

  // Said in words and signs; the colour only repeats it.
  const moved = (name, { a, b }) => {
    const [here, there] = name === "a" ? [a, b] : [b, a];
    if (there === null) return h("span", { class: "in-move", "data-move": "new" }, name === "a" ? "not in B" : "not in A");
    if (name === "a") return h("span", { class: "in-move", "data-move": here === there ? "same" : "" }, here === there ? "= B" : `${there} in B`);
    const by = there - here;
    if (!by) return h("span", { class: "in-move", "data-move": "same" }, "=");
    return h("span", { class: "in-move", "data-move": by > 0 ? "up" : "down" }, by > 0 ? `▲ ${by}` : `▼ ${-by}`);
  };

  const lines = (results, moves) => {
    const [shownA, shownB] = [results.a.hits.length, results.b.hits.length];
    const height = ROW * Math.max(shownA, shownB, 1);
    const y = (rank) => ROW * (rank - 1) + 24; // the middle of a row without the space below it
    const paths = [...moves.values()].map(({ a, b }) => {
      const inA = a !== null && a <= shownA;
      const inB = b !== null && b <= shownB;
      const kind = inA && inB ? (a === b ? "same" : b < a ? "up" : "down") : inA ? "gone" : "new";
      // What one side does not show comes from below, or leaves that way, and fades.
      const from = inA ? [0, y(a)] : [GAP * 0.55, Math.min(height, y(b) + ROW * 0.7)];
      const to = inB ? [GAP, y(b)] : [GAP * 0.45, Math.min(height, y(a) + ROW * 0.7)];
      const middle = (from[0] + to[0]) / 2;
      return svg("path", {
        d: `M ${from[0]} ${from[1]} C ${middle} ${from[1]}, ${middle} ${to[1]}, ${to[0]} ${to[1]}`,
        class: "in-line",
        "data-move": kind,
      });
    });
    const said = [...moves.values()].filter(({ a, b }) => a !== b).length;
    return svg(
      "svg",
      { class: "in-lines", viewBox: `0 0 ${GAP} ${height}`, width: GAP, height, role: "img", "aria-label": `${plural(said, "memory", "memories")} of ${moves.size} stand elsewhere in B than in A` },
      paths,
    );
  };

  return { node, draw };
}
