// The focus stays in the widget when what had it goes: a button that has done its work and vanishes, or is disabled.
// Otherwise the page has it, where the next letter is a command of the notebook: "x" cuts the cell.

const FOCUSABLE = 'button, input, select, textarea, summary, [tabindex="0"]';

function keepFocus(frame) {
  let last = null;
  let above = []; // its ancestors, the nearest first
  let place = 0; // which of all it was

  const seen = (node) => node.isConnected && node.getClientRects().length > 0;
  const usable = (node) => seen(node) && !node.disabled && node.tabIndex >= 0;

  const look = () => {
    if (!last || !seen(frame)) return;
    const now = frame.getRootNode().activeElement;
    if (now && now !== document.body && now !== last) {
      if (!frame.contains(now)) last = null;
      return;
    }
    if (seen(last) && !last.disabled) {
      if (now !== last) last = null; // the person has left
      return;
    }
    const home = above.find((node) => seen(node) && [...node.querySelectorAll(FOCUSABLE)].some(usable));
    const near = [...frame.querySelectorAll(FOCUSABLE)]
      .map((node, at) => ({ node, apart: Math.abs(at - place) }))
      .filter(({ node }) => home?.contains(node) && usable(node));
    // Of two that are as near the later one, which Tab would have come to.
    near.sort((a, b) => a.apart - b.apart);
    const next = near.filter(({ apart }) => apart === near[0].apart).at(-1)?.node;
    if (next) next.focus({ preventScroll: true });
    else last = null;
  };

  frame.addEventListener("focusin", (event) => {
    last = event.target;
    above = [];
    place = [...frame.querySelectorAll(FOCUSABLE)].indexOf(last);
    for (let node = last.parentElement; node && node !== frame.parentElement; node = node.parentElement) above.push(node);
  });
  frame.addEventListener("focusout", () => setTimeout(look));
  const observer = new MutationObserver(look);
  observer.observe(frame, { childList: true, subtree: true, attributes: true, attributeFilter: ["disabled", "hidden"] });
  return () => observer.disconnect();
}
