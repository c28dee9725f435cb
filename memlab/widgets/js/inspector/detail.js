// An opened memory: its whole text, the sum behind its score, its rank in every channel, and what is near it.

function detailOf(found, { palette, go, askWhy }) {
  return [
    // What scrolls can have the focus, so that the keyboard scrolls it.
    h("div", { class: "in-fulltext", tabindex: "0", role: "region", "aria-label": "The whole text" }, textOf(found.text)),
    found.passages > 1
      ? h(
          "p",
          { class: "in-note" },
          found.passage ? `passage ${found.passage} of ${found.passages} matched` : `${found.passages} passages`,
          found.text.some((piece) => piece.passage) ? h("span", { class: "in-passage in-key" }, "picked out like this") : null,
        )
      : null,
    h("section", { "aria-label": "The sum" }, h("h5", {}, "The sum, channel by channel"), sumOf(found, palette)),
    h(
      "div",
      { class: "in-detail-columns" },
      h(
        "section",
        { "aria-label": "Nearest memories" },
        h("h5", {}, "Nearest memories, by cosine"),
        found.neighbours.length ? near(found.neighbours, go, askWhy) : h("p", { class: "ml-quiet" }, "it has no vector to compare"),
      ),
      h("section", { "aria-label": "Metadata" }, h("h5", {}, "Memory"), factsOf(found)),
    ),
    found.sentence
      ? h("details", { class: "in-sentence", "data-keep": "sentence" }, h("summary", {}, "The sum in one sentence"), h("p", {}, found.sentence))
      : null,
  ];
}

/** One row a channel: where it has the memory, what it scored, how that became a contribution. */
function sumOf(found, palette) {
  const cell = (text, kind = "") => h("td", { class: kind }, text);
  const rows = found.ranks.map((row) => {
    const look = palette.find((one) => one.name === row.channel);
    const part = found.sum?.parts.find((one) => one.channel === row.channel);
    const name = h("th", { scope: "row" }, swatch(look), row.channel);
    if (row.rank === undefined) return h("tr", {}, name, h("td", { colspan: 4, class: "ml-quiet" }, row.why));
    return h(
      "tr",
      {},
      name,
      cell(row.beyond ? `#${row.rank.toLocaleString("en")} (beyond)` : `#${row.rank}`, "ml-number"),
      cell(`${row.unit} ${Number(row.raw).toPrecision(4)}`, "ml-number"),
      cell(part ? part.formula : "brought in by no list", part?.counted ? "in-formula" : "in-formula ml-quiet"),
      cell(part ? figure(part.value, 6) : "–", "ml-number"),
    );
  });
  const head = h("tr", {}, ["channel", "rank", "raw score", "formula", "gives"].map((name) => h("th", { scope: "col" }, name)));
  const total = [];
  if (found.sum && found.sum.factor !== 1) {
    const look = palette.find((one) => one.name === "recency");
    total.push(
      h("tr", { class: "in-total" }, h("th", { scope: "row", colspan: 4 }, "sum of the contributions"), cell(figure(found.sum.fused, 6), "ml-number")),
      h(
        "tr",
        {},
        h("th", { scope: "row" }, swatch(look), "recency"),
        h("td", { colspan: 2 }, `${found.sum.age_days.toFixed(1)} days old`),
        cell(`× ${found.sum.factor.toFixed(6)}`, "in-formula"),
        cell(signed(found.sum.gain, 6), "ml-number"),
      ),
    );
  }
  if (found.sum) {
    total.push(h("tr", { class: "in-total" }, h("th", { scope: "row", colspan: 4 }, `score, rank ${found.sum.rank}`), cell(figure(found.sum.score, 6), "ml-number in-strong")));
  }
  return h("div", { class: "in-scroll", tabindex: "0", role: "region", "aria-label": "The sum as a table" }, h("table", { class: "in-sum" }, h("thead", {}, head), h("tbody", {}, rows, total)));
}

function factsOf(found) {
  return h(
    "table",
    { class: "in-facts-list" },
    h("tbody", {}, [["id", h("code", {}, found.shown_id)], ...found.metadata].map(([name, value]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, value)))),
  );
}

function near(neighbours, go, askWhy) {
  return h(
    "ol",
    { class: "in-near" },
    neighbours.map((one) =>
      h(
        "li",
        {},
        h("span", { class: "ml-number" }, one.cosine.toFixed(3)),
        h("button", { type: "button", class: "in-link", onclick: () => go(one), title: "open this memory" }, h("code", {}, one.shown_id)),
        h("span", { class: "in-near-text" }, one.text),
        one.rank === null
          ? h("button", { type: "button", class: "in-link ml-quiet", onclick: () => askWhy(one.id) }, "why not?")
          : h("span", { class: "ml-quiet ml-number" }, `#${one.rank}`),
      ),
    ),
  );
}
