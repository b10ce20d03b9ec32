"use strict";
/* What is wider than the screen scrolls inside itself, and a note above it says so. */

function noteWidth(box) {
  const note = make("p", "This is wider than the screen: scroll it sideways.", "wide");
  box.before(note);
  const check = () => { note.hidden = box.scrollWidth <= box.clientWidth + 1; };
  new ResizeObserver(check).observe(box);
  new MutationObserver(check).observe(box, {childList: true, subtree: true});
  check();
}
