// What scrolls can be reached by the keyboard: tables and code that are wider than the page.
(function () {
  "use strict";
  function reach() {
    for (const box of document.querySelectorAll(".table-wrapper, .highlight pre, div.math")) {
      const scrolls = box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight;
      if (scrolls) {
        box.setAttribute("tabindex", "0");
      } else {
        box.removeAttribute("tabindex");
      }
    }
  }
  document.addEventListener("DOMContentLoaded", reach);
  window.addEventListener("load", reach);
  window.addEventListener("resize", reach);
})();
