// How contributions look: stacked bars and columns of figures, in the colours of a recall's static table.

const figure = (value, digits = 4) => Number(value).toFixed(digits);
const signed = (value, digits = 4) => (value < 0 ? "−" : "+") + Math.abs(value).toFixed(digits);
const lasted = (milliseconds) => (milliseconds < 1000 ? `${milliseconds.toFixed(1)} ms` : `${(milliseconds / 1000).toFixed(1)} s`);
const plural = (count, one, many = `${one}s`) => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;

/** Text that was cut into pieces by Python: the query's words marked, the passage that matched picked out. */
function textOf(pieces) {
  return pieces.map((piece) => {
    const inner = piece.mark ? h("mark", {}, piece.text) : piece.text;
    if (piece.passage) return h("span", { class: "in-passage" }, inner);
    if (piece.note) return h("span", { class: "ml-quiet" }, inner);
    return inner;
  });
}

/** The letter of a channel on its colour; the name is beside it or in its title. */
function swatch(look) {
  return h(
    "span",
    { class: "in-swatch", style: { background: look.colour, color: look.ink }, title: look.name, "aria-hidden": "true" },
    look.letter,
  );
}

/** What each channel and recency gave to a hit, in stacking order: name, value, rank, whether it counted. */
function sharesOf(hit, palette) {
  return palette.map((look) => {
    if (look.name === "recency") return { look, value: hit.gain, factor: hit.factor, there: hit.factor !== 1 };
    const part = hit.parts.find((one) => one.channel === look.name);
    if (!part) return { look, value: 0, there: false };
    return { look, value: part.value, rank: part.rank, counted: part.counted, there: true };
  });
}

/** A stacked bar. It is a picture: its text alternative says the same in words. */
function bar(hit, palette, top) {
  const shares = sharesOf(hit, palette);
  const said = shares
    .filter((share) => share.there && share.counted !== false)
    .map((share) => `${share.look.name} ${signed(share.value)}`)
    .join(", ");
  const segments = shares
    .filter((share) => share.value > 0)
    .map((share) => {
      const width = (100 * share.value) / (top || 1);
      return h(
        "span",
        {
          class: "in-segment",
          style: { width: `${width}%`, background: share.look.colour, color: share.look.ink },
          title: `${share.look.name} ${signed(share.value, 6)}`,
        },
        width > 8 ? share.look.letter : "",
      );
    });
  return h("span", { class: "in-bar", role: "img", "aria-label": `${figure(hit.score)} = ${said}` }, segments);
}

/** The same shares as figures, each channel in its own column so that hits can be compared down the list. */
function columns(hit, palette) {
  return sharesOf(hit, palette).map((share) => {
    let value = "–";
    let under = "";
    if (share.look.name === "recency") {
      value = share.there ? signed(share.value, 3) : "–";
      under = share.there ? `×${share.factor.toFixed(3)}` : "";
    } else if (share.there) {
      value = share.counted ? figure(share.value, 3) : "(0)";
      under = share.rank === null ? "beyond" : `#${share.rank}`;
    }
    const title =
      share.counted === false
        ? `${share.look.name}: not counted, another channel of its group says more`
        : share.there || share.look.name === "recency"
          ? share.look.name
          : `${share.look.name}: gave nothing; open the hit to see why`;
    return h(
      "span",
      { class: "in-column", "data-empty": !share.there, title },
      h("span", { class: "in-figure" }, value),
      h("span", { class: "in-under" }, under),
    );
  });
}

/** The heads of these columns, which are the legend of the bars too. */
function legend(palette) {
  return h(
    "div",
    { class: "in-legend", "aria-hidden": "true" },
    h("span", { class: "in-legend-title" }, "what each channel gave"),
    palette.map((look) => h("span", { class: "in-head" }, swatch(look), h("span", {}, look.name))),
    h("span", { class: "in-head in-head-score" }, "score"),
  );
}
