// The settings of one side: sliders with a number beside each, which says exactly what the slider says roughly.

const FUSIONS = [
  ["score", "Scores", "a weighted sum of scores: keywords relative to the best, cosines as they are"],
  ["rrf", "RRF", "reciprocal rank fusion: weight / (k + rank)"],
  ["convex", "Convex", "scores stretched to 0..1 within each list, then a weighted mean"],
];
const DAY = 86400000;

/** One slider with its number. `scale` maps a value to the slider's 0..1 and back, for what spans magnitudes. */
function knob({ label, hint, min, max, step, value, digits = 0, swatchOf = null, log = false, change }) {
  const there = (real) => (log ? Math.log(real / min) / Math.log(max / min) : (real - min) / (max - min));
  const back = (share) => {
    const real = log ? min * (max / min) ** share : min + share * (max - min);
    return Number((Math.round(real / step) * step).toFixed(6));
  };
  const clamp = (share) => Math.min(1, Math.max(0, share));
  const range = h("input", { type: "range", min: 0, max: 1, step: "any", value: clamp(there(value)), "aria-label": label });
  const number = h("input", { type: "number", min, step, value: Number(value).toFixed(digits), "aria-label": `${label}, exact` });
  const said = () => range.setAttribute("aria-valuetext", number.value);
  said();
  range.addEventListener("input", () => {
    number.value = back(Number(range.value)).toFixed(digits);
    said();
    change(Number(number.value));
  });
  // With step "any" the arrow keys would move by a hundredth of the slider; a person means one step.
  range.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10 }[event.key];
    if (!by) return;
    event.preventDefault();
    const next = Math.min(max, Math.max(min, Number((Number(number.value) + by * step).toFixed(6))));
    number.value = next.toFixed(digits);
    range.value = clamp(there(next));
    said();
    change(next);
  });
  number.addEventListener("input", () => {
    if (number.value === "" || Number.isNaN(Number(number.value))) return;
    range.value = clamp(there(Number(number.value)));
    said();
    change(Number(number.value));
  });
  return h(
    "div",
    { class: "in-knob", title: hint ?? null },
    h("span", { class: "in-label" }, swatchOf ? swatch(swatchOf) : null, label),
    range,
    number,
  );
}

/** A row of buttons of which one is pressed. */
function choice(label, options, chosen, change) {
  return h(
    "div",
    { class: "in-choice", role: "group", "aria-label": label },
    options.map(([value, name, hint]) =>
      h("button", { type: "button", "aria-pressed": String(value === chosen), title: hint, onclick: () => change(value) }, name),
    ),
  );
}

function group(title, ...children) {
  return h("section", { class: "in-group", "aria-label": title }, h("h4", {}, title), children);
}

/**
 * The panel of one side. `knobs` is a plain object that the panel never changes: it calls `change(newKnobs, redraw)`.
 */
function knobPanel({ hello, knobs, change }) {
  const set = (changes, redraw = false) => change(changes, redraw);
  const weight = (name) =>
    knob({
      label: name,
      hint: `weight of the ${name} channel; 0 leaves it out`,
      min: 0,
      max: Math.max(2, knobs.weights[name]),
      step: 0.01,
      digits: 2,
      value: knobs.weights[name],
      swatchOf: hello.palette.find((look) => look.name === name),
      change: (value) => set({ weights: { [name]: value } }),
    });

  const fusion = group(
    "Fusion",
    choice("Fusion", knobs.fusion === "own" ? [...FUSIONS, ["own", "Own", hello.fusion]] : FUSIONS, knobs.fusion, (kind) =>
      set({ fusion: kind, weights: { ...hello.defaults[kind] } }, true),
    ),
    knobs.fusion === "rrf"
      ? knob({ label: "k", hint: "larger k: the first ranks are less special", min: 1, max: 200, step: 1, log: true, value: Math.max(knobs.k, 1), change: (k) => set({ k }) })
      : null,
    knobs.fusion === "own" ? h("p", { class: "ml-quiet" }, hello.fusion) : hello.channels.map(weight),
    h(
      "label",
      { class: "in-check", title: "document vector and passages are looks at one text: only the better one counts" },
      h("input", { type: "checkbox", checked: knobs.one_vote, onchange: (event) => set({ one_vote: event.target.checked }) }),
      "vector and passage share one vote",
    ),
  );

  const search = group(
    "Search",
    knob({ label: "depth", hint: "candidates taken from each channel", min: 1, max: 500, step: 1, log: true, value: knobs.depth, change: (depth) => set({ depth: Math.max(1, Math.round(depth)) }) }),
    knob({ label: "hits", hint: "how many are shown", min: 1, max: 50, step: 1, value: knobs.limit, change: (limit) => set({ limit: Math.max(0, Math.round(limit)) }) }),
  );

  const recency = group(
    "Recency",
    h(
      "label",
      { class: "in-check" },
      h("input", { type: "checkbox", checked: knobs.boost, onchange: (event) => set({ boost: event.target.checked }, true) }),
      "newer memories get a bonus",
    ),
    knobs.boost
      ? [
          knob({ label: "strength", hint: "the bonus at age 0", min: 0, max: 1, step: 0.01, digits: 2, value: knobs.strength, change: (strength) => set({ strength }) }),
          knob({ label: "half-life", hint: "days after which half of the bonus is left", min: 1, max: 730, step: 1, log: true, value: knobs.half_life, change: (half_life) => half_life > 0 && set({ half_life }) }),
        ]
      : null,
    timeTravel(hello, knobs, set),
  );

  return [fusion, search, recency, filterPanel(hello, knobs, set)];
}

/** The slider for `now`. What was set exactly stays exact until the slider moves. */
function timeTravel(hello, knobs, set) {
  const present = Date.now();
  const first = hello.facets.oldest ? Date.parse(hello.facets.oldest) : present;
  const last = Math.max(present, Date.parse(hello.facets.newest ?? 0) || 0, knobs.now ? Date.parse(knobs.now) : 0);
  const days = Math.max(1, Math.ceil((last - first) / DAY));
  const at = knobs.now ? Date.parse(knobs.now) : present;
  const words = (now) => (now ? `${now.slice(0, 10)} ${now.slice(11, 16)}` : "the present");
  const shown = h("output", { class: "in-now" }, words(knobs.now));
  const back = h("button", { type: "button", class: "in-small", disabled: !knobs.now, onclick: () => set({ now: null }, true) }, "present");
  const range = h("input", {
    type: "range",
    min: 0,
    max: days,
    step: 1,
    value: Math.round((at - first) / DAY),
    "aria-label": "now: the moment that ages are counted from",
    "aria-valuetext": words(knobs.now),
  });
  range.addEventListener("input", () => {
    const now = new Date(Math.min(first + Number(range.value) * DAY, last)).toISOString();
    shown.textContent = words(now);
    range.setAttribute("aria-valuetext", words(now));
    back.disabled = false;
    set({ now });
  });
  return h(
    "div",
    { class: "in-travel", title: "ages are counted from this moment (UTC): recall as it was, or will be" },
    h("div", { class: "in-travel-head" }, h("span", { class: "in-label" }, "now"), shown, back),
    range,
  );
}
