// Time from display to submit and the number of changes, by the browser's own clock.
"use strict";
const form = document.querySelector("form.play");
if (form) {
  const shown = performance.now();
  let revisions = 0;
  form.addEventListener("input", () => { revisions += 1; });
  form.addEventListener("submit", (event) => {
    if (form.dataset.sent) { event.preventDefault(); return; }
    form.dataset.sent = "yes";
    form.elements.client_ms.value = String(Math.round(performance.now() - shown));
    form.elements.revisions.value = String(Math.max(revisions - 1, 0));
  });
}
