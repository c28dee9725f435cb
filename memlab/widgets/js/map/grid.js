// Which points are near a place, without looking at all of them: points sorted by the cells of a uniform grid.

function makeGrid(points, count) {
  let left = Infinity, right = -Infinity, bottom = Infinity, top = -Infinity;
  for (let i = 0; i < count; i += 1) {
    const x = points[2 * i], y = points[2 * i + 1];
    if (x < left) left = x;
    if (x > right) right = x;
    if (y < bottom) bottom = y;
    if (y > top) top = y;
  }
  if (!count) left = right = bottom = top = 0;
  const width = Math.max(right - left, 1e-9), height = Math.max(top - bottom, 1e-9);
  const side = Math.max(1, Math.min(512, Math.round(Math.sqrt(count / 3))));
  const column = (x) => Math.max(0, Math.min(side - 1, Math.floor(((x - left) / width) * side)));
  const row = (y) => Math.max(0, Math.min(side - 1, Math.floor(((y - bottom) / height) * side)));

  // Counting sort: `starts[c]` is where the points of cell c begin in `order`.
  const starts = new Uint32Array(side * side + 1);
  const cells = new Uint32Array(count);
  for (let i = 0; i < count; i += 1) {
    cells[i] = row(points[2 * i + 1]) * side + column(points[2 * i]);
    starts[cells[i] + 1] += 1;
  }
  for (let c = 0; c < side * side; c += 1) starts[c + 1] += starts[c];
  const order = new Uint32Array(count);
  const next = starts.slice();
  for (let i = 0; i < count; i += 1) order[next[cells[i]]++] = i;

  /** Call `each(i)` for every point in a box, and some around it. */
  const inBox = (x0, y0, x1, y1, each) => {
    const c0 = column(x0), c1 = column(x1), r1 = row(y1);
    for (let r = row(y0); r <= r1; r += 1) {
      const end = starts[r * side + c1 + 1];
      for (let at = starts[r * side + c0]; at < end; at += 1) each(order[at]);
    }
  };

  /** The point nearest to a place, within a distance, that passes; -1 if there is none. */
  const nearest = (x, y, reach, passes) => {
    let best = -1, least = reach * reach;
    inBox(x - reach, y - reach, x + reach, y + reach, (i) => {
      const dx = points[2 * i] - x, dy = points[2 * i + 1] - y, apart = dx * dx + dy * dy;
      // Of points on the same spot the one drawn last is seen.
      if ((apart < least || (apart === least && i > best)) && passes(i)) {
        best = i;
        least = apart;
      }
    });
    return best;
  };

  /** The points inside a polygon of [x, y, x, y, ...]. */
  const inPolygon = (polygon, passes) => {
    let x0 = Infinity, y0 = Infinity, x1 = -Infinity, y1 = -Infinity;
    for (let at = 0; at < polygon.length; at += 2) {
      x0 = Math.min(x0, polygon[at]);
      x1 = Math.max(x1, polygon[at]);
      y0 = Math.min(y0, polygon[at + 1]);
      y1 = Math.max(y1, polygon[at + 1]);
    }
    const found = [];
    inBox(x0, y0, x1, y1, (i) => {
      const x = points[2 * i], y = points[2 * i + 1];
      if (x < x0 || x > x1 || y < y0 || y > y1 || !passes(i)) return;
      let inside = false;
      for (let a = 0, b = polygon.length - 2; a < polygon.length; b = a, a += 2) {
        const ax = polygon[a], ay = polygon[a + 1], bx = polygon[b], by = polygon[b + 1];
        if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) inside = !inside;
      }
      if (inside) found.push(i);
    });
    return found;
  };

  return { left, right, bottom, top, inBox, nearest, inPolygon };
}
