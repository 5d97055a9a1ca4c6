// Keys, times by the browser's own clock, and what the page says while somebody answers. Every page works without it.
"use strict";

const form = document.querySelector("form.play");
const live = document.querySelector(".live");
const isTyping = (target) => target.matches("input:not([type=radio]), textarea, select");

function say(text, kind) {
  if (!live) return;
  live.className = `live ${kind || ""}`;
  if (live.textContent !== text) live.textContent = text;
}

// ---- what is typed outlives a lost connection: this tab keeps it, for this question of this person, until it is stored
const kept = form || document.querySelector("form.survey");
// a frame may have no storage
const inTab = (use) => { try { return use(window.sessionStorage); } catch { return null; } };
if (kept && kept.elements.csrf.value) {
  const place = [kept.action, ...["csrf", "order", "step"].map((name) => kept.elements[name]?.value)].join(" ");
  const fields = [...kept.querySelectorAll("textarea, input:not([type=hidden], [type=range], [name=report])")];
  const before = JSON.parse(inTab((tab) => tab.getItem("typed")) || "{}");
  fields.forEach((field, at) => {
    if (before.place !== place) return;
    if (field.type === "radio") field.checked ||= before.values[at];
    else field.value ||= before.values[at];
  });
  kept.addEventListener("input", () => {
    const values = fields.map((field) => (field.type === "radio" ? field.checked : field.value));
    inTab((tab) => tab.setItem("typed", JSON.stringify({ place, values })));
  });
} else if (/^\/(feedback|thanks|declined|withdrawn)$/.test(window.location.pathname)) inTab((tab) => tab.removeItem("typed"));

// ---- what the server stores of the browser: the time that an answer took and how exact it is, whether the page was
// seen, how often the answer was changed, the screen's size and what points on it
if (form) {
  let shown = performance.now();
  let revisions = 0;
  let hidden = { n: 0, ms: 0, since: null };
  const frames = [];
  let last = null;
  // time begins with the first frame that shows the page
  const frame = (now) => {
    if (last === null) shown = now;
    else frames.push(now - last);
    last = now;
    if (frames.length < 40) requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
  document.addEventListener("visibilitychange", () => {
    if (last === null) return;
    if (document.hidden) hidden = { ...hidden, n: hidden.n + 1, since: performance.now() };
    else if (hidden.since !== null) hidden = { ...hidden, ms: hidden.ms + performance.now() - hidden.since, since: null };
  });
  // a slider says "input" at every step on the way, and "change" where it is let go
  form.addEventListener("input", (event) => { if (event.target.type !== "range") revisions += 1; });
  form.addEventListener("change", (event) => { if (event.target.type === "range") revisions += 1; });
  form.addEventListener("submit", () => {
    const middle = frames.sort((one, other) => one - other)[frames.length >> 1];
    const sent = {
      client_ms: performance.now() - shown, revisions: Math.max(revisions - 1, 0),
      frame_us: 1000 * middle, hidden_ms: hidden.ms, n_hidden: hidden.n,
    };
    for (const [name, value] of Object.entries(sent)) form.elements[name].value = value >= 0 ? String(Math.round(value)) : "";
  });
  // the page came back out of the browser's memory
  window.addEventListener("pageshow", (event) => {
    if (event.persisted) { shown = performance.now(); hidden = { n: 0, ms: 0, since: null }; }
  });
}

// ---- a slow line shows that something happens; what was sent is not sent again while it is under way
for (const each of document.querySelectorAll("form[method=post]")) {
  let waiting = 0;
  let button = null;
  let reached = false;
  const lost = document.createElement("p");
  lost.className = "problem";
  lost.setAttribute("role", "alert");
  window.addEventListener("online", () => lost.remove());
  const ready = () => {
    clearTimeout(waiting);
    waiting = 0;
    if (button && button.dataset.text) { button.textContent = button.dataset.text; button.disabled = false; }
  };
  each.addEventListener("submit", (event) => {
    if (event.defaultPrevented) return;
    if (waiting) { event.preventDefault(); return; }
    if (!navigator.onLine && !reached) {
      event.preventDefault();
      // a server on this very machine is reached without a connection
      fetch("/static/icon.svg", { cache: "no-store" }).then(
        () => { reached = true; each.requestSubmit(event.submitter); },
        () => { lost.textContent = document.body.dataset.offline; each.append(lost); },
      );
      return;
    }
    button = event.submitter || each.querySelector("button:not([type=button])");
    waiting = setTimeout(() => {
      button.dataset.text = button.textContent;
      button.textContent = document.body.dataset.sending;
      button.disabled = true;
      // where the connection is lost, the button works again; the server takes the same answer once
      waiting = setTimeout(ready, 8000);
    }, 300);
  });
  // the page came back out of the browser's memory
  window.addEventListener("pageshow", (event) => { if (event.persisted) ready(); });
}
for (const field of document.querySelectorAll("input[name=screen]")) {
  const width = window.innerWidth;
  field.value = width < 600 ? "small" : width < 1100 ? "medium" : "large";
}
for (const field of document.querySelectorAll("input[name=pointer]")) {
  field.value = ["fine", "coarse"].find((kind) => window.matchMedia(`(pointer: ${kind})`).matches) || "none";
}

// ---- keys
if (window.matchMedia("(any-pointer: fine)").matches) {
  for (const hint of document.querySelectorAll(".keys")) hint.hidden = false;
}
// a key that is held down shows one answer, not the next question too
document.addEventListener("keydown", (event) => {
  if (event.repeat && event.key === "Enter") event.preventDefault();
});

const boxes = form ? [...form.querySelectorAll("input[name=report]")] : [];
if (boxes.length) {
  const choose = (box) => {
    box.checked = true;
    box.focus({ preventScroll: true });
    box.dispatchEvent(new Event("input", { bubbles: true }));
  };
  const byKey = (key) => {
    const chosen = boxes.find((box) => box.checked);
    // 1 to 9 are tens; the same key again goes on to the end of the scale
    const values = { 0: ["1"], 1: ["10", "1"], 9: ["90", "99"] }[key] || [`${key}0`];
    const value = chosen && chosen.value === values[0] && values[1] ? values[1] : values[0];
    return boxes.find((box) => box.value === value);
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || isTyping(event.target)) return;
    if (/^[0-9]$/.test(event.key)) {
      const box = byKey(event.key);
      if (box) { event.preventDefault(); choose(box); }
    } else if (event.target === document.body && /^Arrow(Left|Right)$/.test(event.key)) {
      // a choice that has the focus moves by itself
      event.preventDefault();
      const at = boxes.findIndex((box) => box.checked);
      choose(boxes[at < 0 ? (boxes.length - 1) / 2 : at]);
    } else if (event.target === document.body && event.key === "Enter") {
      event.preventDefault();
      form.requestSubmit();
    }
  });
  form.addEventListener("input", () => {
    const chosen = boxes.find((box) => box.checked);
    if (chosen && live) say(live.dataset.said.replace("{a}", chosen.value).replace("{b}", String(100 - chosen.value)));
  });
}

// ---- a slider in log-odds: what it says in words, keys and buttons that move it, and that it was moved at all
const slider = form ? form.querySelector("input[type=range]") : null;
if (slider && live) {
  let touched = false;
  form.querySelector(".typed").remove();
  slider.closest(".slider").hidden = false;
  slider.focus();
  const limits = [2, 5, 20, 200, Infinity];
  const inWords = () => {
    const steps = Number(slider.value);
    if (!steps) return slider.dataset.equal;
    const odds = Math.exp(Math.abs(steps) * Number(slider.dataset.step));
    const number = (value, digits) => value.toLocaleString(document.documentElement.lang, { maximumSignificantDigits: digits });
    // one in so many: the round number that is nearest; below that, tenths
    const of = odds < 9.5 ? 10 : [10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000].findLast((each) => each <= 1.05 * (1 + odds));
    return slider.dataset.said.replace("{side}", steps < 0 ? "A" : "B")
      .replace("{words}", slider.dataset.words.split("|")[limits.findIndex((limit) => odds < limit)])
      .replace("{n}", number(odds < 9.5 ? Math.round(10 * odds / (1 + odds)) : of - 1, 4)).replace("{m}", number(of, 5))
      .replace("{percent}", number(100 * odds / (1 + odds), odds < 100 ? 2 : 4));
  };
  const show = () => {
    slider.setAttribute("aria-valuetext", touched ? inWords() : slider.dataset.hint);
    say(touched ? inWords() : slider.dataset.hint);
  };
  const touch = () => { touched = true; slider.classList.remove("untouched"); slider.name = "report"; show(); };
  const move = (to) => {
    slider.value = String(to);
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    slider.dispatchEvent(new Event("change", { bubbles: true }));
  };
  for (const kind of ["input", "pointerdown"]) slider.addEventListener(kind, touch);
  const nudges = form.querySelector(".nudges");
  nudges.hidden = false;
  for (const button of nudges.querySelectorAll("button")) {
    const by = Number(button.dataset.by);
    button.addEventListener("click", () => move(by ? Number(slider.value) + by : 0));
  }
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.target.matches("button, a, summary")) return;
    if (event.key === "0") { event.preventDefault(); move(0); }
    else if (event.key === "Enter") { event.preventDefault(); form.requestSubmit(); }
    else if (event.target === document.body && /^(Arrow|Page|Home|End)/.test(event.key)) slider.focus();
  });
  form.addEventListener("submit", (event) => {
    if (touched) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    live.setAttribute("aria-live", "assertive");
    live.removeAttribute("aria-hidden");
    say(slider.dataset.untouched, "no");
  }, { capture: true });
  show();
}

// ---- one word, where one word is asked for
for (const field of document.querySelectorAll("input[data-one-word]")) {
  field.addEventListener("input", () => {
    const many = field.value.trim().split(/\s+/u).length > 1;
    say(many ? field.dataset.oneWord : "", "no");
  });
}

// ---- a token: at every key, whether what stands there is one
const token = document.querySelector("input[data-token-url]");
if (token && live) {
  let last = 0;
  const check = async () => {
    const text = token.value;
    const number = (last += 1);
    if (!text) { say(""); return; }
    try {
      const reply = await fetch(`${token.dataset.tokenUrl}?text=${encodeURIComponent(text)}`, { headers: { accept: "application/json" } });
      const is = reply.ok && (await reply.json()).token;
      const seen = text.replaceAll(" ", "·");
      // an earlier letter's answer may come late
      if (number === last) say((is ? token.dataset.isToken : token.dataset.noToken).replace("{token}", seen), is ? "yes" : "no");
    } catch {
      if (number === last) say("");
    }
  };
  token.addEventListener("input", check);
  check();
}

// ---- bets: what is not on a word lies on anything else
const other = form ? form.querySelector("input[name=chips_other]") : null;
if (other && live) {
  const all = Number(live.dataset.chips);
  const count = () => {
    const fields = [...form.querySelectorAll("input[inputmode=numeric]")].filter((field) => field !== other);
    const left = all - fields.reduce((sum, field) => sum + (Number(field.value) || 0), 0);
    other.value = String(Math.max(left, 0));
    say(left < 0 ? live.dataset.over.replace("{over}", String(-left)) : "", "no");
  };
  other.readOnly = true;
  form.addEventListener("input", count);
  count();
}
