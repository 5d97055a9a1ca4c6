// What scrolls can be reached by the keyboard: tables and code that are wider than the page. The theme's landmarks get names.
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
  function name() {
    const names = { ".sidebar-drawer": "All pages", ".toc-drawer": "This page", ".content-icon-container": "Source and colours" };
    for (const [where, label] of Object.entries(names)) {
      for (const part of document.querySelectorAll(where)) {
        part.setAttribute("aria-label", label);
        if (part.tagName === "DIV") {
          part.setAttribute("role", "navigation");
        }
      }
    }
  }
  document.addEventListener("DOMContentLoaded", name);
  document.addEventListener("DOMContentLoaded", reach);
  window.addEventListener("load", reach);
  window.addEventListener("resize", reach);
})();
