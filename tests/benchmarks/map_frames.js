// Moves the map as a person would, waits for the frames that it draws, and returns what each took.
async ([what, rounds]) => {
    const root = document.querySelector('.ml-root'), map = root.memlabMap, stage = root.querySelector('.mm-stage');
    const box = stage.getBoundingClientRect(), times = [], waits = [];
    const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    const rest = () => new Promise((done) => setTimeout(done, 400));
    const fire = (type, x, y, more = {}) => stage.dispatchEvent(new (type === 'wheel' ? WheelEvent : PointerEvent)(type, {
        clientX: box.left + x, clientY: box.top + y, bubbles: true, cancelable: true, pointerId: 1, button: 0, ...more }));
    stage.setPointerCapture = () => {};
    const cx = box.width / 2, cy = box.height / 2;
    map.times(times);
    if (what === 'full') for (let i = 0; i < rounds; i += 1) { map.draw(); await frame(); }
    if (what === 'pan') {
        fire('pointerdown', cx, cy);
        for (let i = 0; i < rounds; i += 1) {
            const started = performance.now();
            fire('pointermove', cx + 100 * Math.sin(i / 9), cy + 60 * Math.cos(i / 7));
            await frame();
            waits.push(performance.now() - started);
        }
        fire('pointerup', cx, cy);
    }
    if (what === 'wheel') for (let i = 0; i < rounds; i += 1) {
        const started = performance.now();
        fire('wheel', cx, cy, { deltaY: i < rounds / 2 ? -60 : 60 });
        await frame();
        waits.push(performance.now() - started);
    }
    if (what === 'hover') for (let i = 0; i < rounds; i += 1) {
        const started = performance.now();
        fire('pointermove', (i * 37) % box.width, (i * 53) % box.height);
        waits.push(performance.now() - started);
        await frame();
    }
    if (what === 'lasso') for (let i = 0; i < rounds; i += 1) {
        fire('pointerdown', cx + 200, cy, { shiftKey: true });
        for (let a = 0; a < 60; a += 1) fire('pointermove', cx + 200 * Math.cos(a / 9.5), cy + 200 * Math.sin(a / 9.5), { shiftKey: true });
        const started = performance.now();
        fire('pointerup', cx + 200, cy, { shiftKey: true });
        waits.push(performance.now() - started);
        await frame();
    }
    await rest();
    map.times(null);
    return { frames: times.map((one) => one.all), drawn: times.map((one) => one.drawn), waits };
}
