// Filters from what is in the store: a list of values with counts for every kind, closed until it is wanted.

const FACETS = [
  ["project", "project"],
  ["category", "category"],
  ["tags", "tags"],
  ["source", "source"],
];

function filterPanel(hello, knobs, set) {
  const filters = knobs.filters;
  const change = (name, value) => {
    const next = { ...filters };
    if (value === null || value === "" || (Array.isArray(value) && !value.length)) delete next[name];
    else next[name] = value;
    if (!next.tags || next.tags.length < 2) delete next.tag_match;
    set({ filters: next }, true);
  };
  const count = Object.keys(filters).filter((name) => name !== "tag_match").length;
  return group(
    "Filters",
    FACETS.filter(([name]) => hello.facets.values[name].length || filters[name]).map(([name, label]) =>
      facet(name, label, hello.facets.values[name], filters, change),
    ),
    h(
      "div",
      { class: "in-row2" },
      importance("min_importance", "importance ≥", filters, change),
      importance("max_importance", "importance ≤", filters, change),
    ),
    h(
      "div",
      { class: "in-days" },
      day("created_after", "created from", filters, change),
      day("created_before", "before", filters, change),
    ),
    count ? h("button", { type: "button", class: "in-small", onclick: () => set({ filters: {} }, true) }, "clear filters") : null,
  );
}

/** Values to tick. Which list is open is kept by its name, so that ticking one does not close it. */
function facet(name, label, values, filters, change) {
  const chosen = filters[name] ?? [];
  const known = new Set(values.map((entry) => entry.value));
  const all = [...chosen.filter((value) => !known.has(value)).map((value) => ({ value, shown: value, count: 0 })), ...values];
  const list = h("div", { class: "in-values" });
  const draw = (part) =>
    fill(
      list,
      all
        .filter((entry) => entry.shown.toLowerCase().includes(part))
        .slice(0, 80)
        .map((entry) =>
          h(
            "label",
            { class: "in-check" },
            h("input", {
              type: "checkbox",
              checked: chosen.includes(entry.value),
              "data-key": `${name}=${entry.value}`,
              onchange: (event) =>
                change(name, event.target.checked ? [...chosen, entry.value] : chosen.filter((value) => value !== entry.value)),
            }),
            h("span", { class: "in-value" }, entry.shown),
            h("span", { class: "ml-quiet ml-number" }, entry.count.toLocaleString("en")),
          ),
        ),
    );
  draw("");
  const said = chosen.length ? chosen.map((value) => all.find((entry) => entry.value === value).shown).join(", ") : "any";
  return h(
    "details",
    { class: "in-facet", "data-keep": `facet ${name}` },
    h("summary", {}, h("span", { class: "in-label" }, label), h("span", { class: "in-said", "data-any": !chosen.length }, said)),
    all.length > 12
      ? h("input", { type: "search", class: "in-find", placeholder: "find", "aria-label": `find a value of ${label}`, oninput: (event) => draw(event.target.value.toLowerCase()) })
      : null,
    list,
    name === "tags" && chosen.length > 1
      ? choice("How tags combine", [["any", "any of these", ""], ["all", "all of these", ""]], filters.tag_match ?? "any", (value) => change("tag_match", value))
      : null,
  );
}

function importance(name, label, filters, change) {
  const options = ["", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map((value) => h("option", { value }, value === "" ? "any" : value));
  return h(
    "label",
    { class: "in-field" },
    h("span", {}, label),
    h("select", { value: filters[name] ?? "", onchange: (event) => change(name, event.target.value === "" ? null : Number(event.target.value)) }, options),
  );
}

function day(name, label, filters, change) {
  return h(
    "label",
    { class: "in-field" },
    h("span", {}, label),
    h("input", {
      type: "date",
      value: (filters[name] ?? "").slice(0, 10),
      onchange: (event) => change(name, event.target.value ? `${event.target.value}T00:00:00.000Z` : null),
    }),
  );
}
