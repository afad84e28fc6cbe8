/** A shorter way of the pointer, in pixels, is a click. */
const CLICK = 4;

/** Wheel, pointer and keys, for a picture. */
function gestures(picture) {
  const { canvas } = picture;
  let drag = null;

  canvas.addEventListener('wheel', (event) => {
    const down = event.deltaY;
    // What cannot be zoomed out further lets the page scroll.
    if (down > 0 && picture.view.isWhole() && !event.shiftKey) return;
    event.preventDefault();
    const lines = event.deltaMode === WheelEvent.DOM_DELTA_PIXEL ? 1 : 33;
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(down)) {
      picture.move(((event.deltaX || down) * lines) / picture.drawing.plot.width);
    } else {
      picture.zoom(2 ** ((Math.max(-300, Math.min(300, down * lines))) / 150), picture.under(event));
    }
  }, { passive: false });

  canvas.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    drag = { x: event.offsetX, start: picture.under(event), from: picture.view.from, moves: event.shiftKey, far: false };
  });
  canvas.addEventListener('pointermove', (event) => {
    if (!drag) {
      picture.hover(event.offsetX, event.offsetY);
      return;
    }
    drag.far ||= Math.abs(event.offsetX - drag.x) > CLICK;
    if (!drag.far) return;
    if (drag.moves) {
      const share = (drag.x - event.offsetX) / picture.drawing.plot.width;
      picture.moveTo(drag.from + share * picture.view.span);
    } else {
      picture.select([drag.start, picture.under(event)]);
    }
  });
  canvas.addEventListener('pointerup', (event) => {
    const ended = drag;
    drag = null;
    if (!ended) return;
    picture.select(null);
    if (!ended.far) picture.pointed(ended.start, event.offsetY);
    else if (!ended.moves) picture.show(...[ended.start, picture.under(event)].sort((one, other) => one - other));
  });
  canvas.addEventListener('pointercancel', () => {
    drag = null;
    picture.select(null);
  });
  canvas.addEventListener('pointerleave', () => picture.hover(null));

  const keys = {
    ArrowLeft: () => picture.step(-1),
    ArrowRight: () => picture.step(1),
    '+': () => picture.zoom(0.5, picture.cursor),
    '=': () => picture.zoom(0.5, picture.cursor),
    '-': () => picture.zoom(2, picture.cursor),
    PageUp: () => picture.move(-0.8),
    PageDown: () => picture.move(0.8),
    Home: () => picture.moveTo(-Infinity),
    End: () => picture.moveTo(Infinity),
    Enter: () => picture.open(),
    0: () => picture.all(),
    Escape: () => picture.all(),
  };
  canvas.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(keys, event.key)) return;
    event.preventDefault();
    keys[event.key]();
  });

  const buttons = {
    in: () => picture.zoom(0.5, picture.cursor),
    out: () => picture.zoom(2, picture.cursor),
    left: () => picture.move(-0.5),
    right: () => picture.move(0.5),
    all: () => picture.all(),
  };
  for (const button of document.querySelectorAll('[data-do]')) {
    button.addEventListener('click', buttons[button.dataset.do]);
  }
}
