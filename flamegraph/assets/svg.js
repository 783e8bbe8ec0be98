(function (self) {
  "use strict";
  // The script finds its own picture, so several may stand on one page.
  var svg = self && self.closest && self.closest(".sgf");
  if (!svg) svg = document.querySelector(".sgf:not(.live)");
  if (!svg || svg.classList.contains("live")) return;

  var PAD = 10, COLUMN = 6.63, NS = "http://www.w3.org/2000/svg";
  var inner = svg.querySelector(".frames"), bar = svg.querySelector(".ctl");
  var info = svg.querySelector(".info"), match = svg.querySelector(".match");
  var input = svg.querySelector("input"), buttons = svg.querySelectorAll("button");
  var back = buttons[0], reset = buttons[1], idle = info.textContent;
  var frames = [], history = [], zoomed, focused, pixels = 1180;

  function read() {
    var open = [];
    inner.querySelectorAll("g").forEach(function (g, i) {
      var rect = g.querySelector("rect"), lines = g.querySelector("title").textContent;
      var f = {
        g: g, rect: rect, text: g.querySelector("text"), i: i, end: i + 1, depth: +g.getAttribute("data-d"),
        x: parseFloat(rect.getAttribute("x")), w: parseFloat(rect.getAttribute("width")),
        name: lines.split("\n")[0], lines: lines
      };
      open.length = f.depth;
      f.up = open[f.depth - 1];
      open.push(f);
      for (var a = f; a; a = a.up) a.end = i + 1;
      g.frame = f;
      frames.push(f);
    });
    zoomed = focused = frames[0];
  }

  function columns(name, n) {
    if (n < 3) return "";
    return name.length <= n ? name : name.slice(0, n - 2) + "..";
  }

  function label(f, width, x) {
    var text = columns(f.name, Math.floor((width * pixels / 100 - 6) / COLUMN));
    if (!f.text) {
      if (!text) return;
      f.text = document.createElementNS(NS, "text");
      f.text.setAttribute("dx", "4");
      f.text.setAttribute("y", +f.rect.getAttribute("y") + 12);
      f.g.appendChild(f.text);
    }
    f.text.setAttribute("x", x + "%");
    f.text.textContent = text;
  }

  function place(f) {
    var x = 0, w = 100, above = f.i <= zoomed.i && zoomed.i < f.end;
    if (!above) {
      x = (f.x - zoomed.x) / zoomed.w * 100;
      w = f.w / zoomed.w * 100;
    }
    var off = !above && !(zoomed.i <= f.i && f.i < zoomed.end);
    f.g.classList.toggle("off", off);
    f.g.classList.toggle("up", above && f !== zoomed);
    if (off) return;
    f.rect.setAttribute("x", x + "%");
    f.rect.setAttribute("width", w + "%");
    label(f, w, x);
  }

  function layout() {
    frames.forEach(place);
    back.disabled = !history.length;
    reset.disabled = zoomed === frames[0];
  }

  function resize() {
    var width = svg.getBoundingClientRect().width;
    if (width < 100) return;
    pixels = width - 2 * PAD;
    inner.setAttribute("width", pixels);
    var controls = Math.max(220, Math.min(390, width * 0.45));
    bar.setAttribute("width", controls);
    bar.setAttribute("x", width - PAD - controls);
    match.setAttribute("x", width - PAD);
    layout();
  }

  function zoom(f) {
    if (!f || f === zoomed) return;
    history.push(zoomed);
    zoomed = f;
    layout();
  }

  function goBack() {
    if (history.length) {
      zoomed = history.pop();
      layout();
    }
  }

  function matcher(term) {
    var plain = term.toLowerCase(), re = null;
    try { re = new RegExp(term, "i"); } catch (e) { /* then it is plain text */ }
    return function (s) { return s.toLowerCase().indexOf(plain) >= 0 || (re !== null && re.test(s)); };
  }

  // A frame below a matching one adds nothing: its width is counted already.
  function search(term) {
    var hit = term ? matcher(term) : null, sum = 0, count = 0, covered = 0;
    frames.forEach(function (f) {
      var found = hit !== null && f.depth > 0 && hit(f.name);
      f.g.classList.toggle("hit", found);
      if (!found) return;
      count++;
      if (f.i >= covered) {
        sum += f.w;
        covered = f.end;
      }
    });
    match.textContent = hit ? "matched " + sum.toFixed(2) + " % in " + count.toLocaleString("en-US") + (count === 1 ? " frame" : " frames") : "";
  }

  function show(f) {
    info.textContent = f ? f.lines.replace(/\n/g, "  ·  ") : idle;
  }

  // A click must not make the page jump; a key should follow the frame.
  function focus(f, still) {
    if (!f || f.g.classList.contains("off")) return;
    focused.g.removeAttribute("tabindex");
    focused = f;
    f.g.setAttribute("tabindex", "0");
    f.g.focus({preventScroll: still === true});
    show(f);
  }

  function sibling(f, step) {
    for (var i = f.i + step; i >= 0 && i < frames.length; i += step) {
      if (frames[i].depth === f.depth && !frames[i].g.classList.contains("off")) return frames[i];
    }
    return null;
  }

  function child(f) {
    var best = null;
    for (var i = f.i + 1; i < f.end; i++) {
      if (frames[i].up === f && !frames[i].g.classList.contains("off") && (!best || frames[i].w > best.w)) best = frames[i];
    }
    return best;
  }

  function mine() {
    if (svg.contains(document.activeElement) || svg.matches(":hover")) return true;
    var others = document.querySelectorAll(".sgf");
    return others[0] === svg && !document.querySelector(".sgf:hover") && !document.querySelector(".sgf :focus");
  }

  var grows = svg.getAttribute("data-down") === "1";
  function move(key, f) {
    if (key === "ArrowLeft") return sibling(f, -1);
    if (key === "ArrowRight") return sibling(f, 1);
    return (key === "ArrowDown") === grows ? child(f) : f.up;
  }

  function typing(e) { return /^(INPUT|TEXTAREA|SELECT)$/i.test(e.target.tagName || ""); }

  function key(e) {
    if (e.ctrlKey || e.metaKey || e.altKey || !mine()) return;
    if (e.key === "Escape") {
      if (input.value) { input.value = ""; search(""); input.blur(); } else if (e.target === input) input.blur(); else goBack();
    } else if (typing(e)) return;
    else if (e.key === "/") input.focus();
    else if (e.key === "0") { zoom(frames[0]); }
    else if (e.key === "Backspace") goBack();
    else if (!inner.contains(document.activeElement)) return;
    else if (e.key === "Enter" || e.key === " ") zoom(focused);
    else if (/^Arrow/.test(e.key)) focus(move(e.key, focused));
    else return;
    e.preventDefault();
  }

  function frameOf(e) {
    var g = e.target.closest && e.target.closest("g");
    return g && g.frame;
  }

  read();
  svg.classList.add("live");
  svg.removeAttribute("viewBox");
  svg.setAttribute("width", "100%");
  if (frames.length) frames[0].g.setAttribute("tabindex", "0");
  inner.addEventListener("click", function (e) { var f = frameOf(e); if (f) { zoom(f); focus(f, true); } });
  inner.addEventListener("mouseover", function (e) { show(frameOf(e)); });
  inner.addEventListener("mouseleave", function () { show(null); });
  inner.addEventListener("focusin", function (e) { show(frameOf(e)); });
  input.addEventListener("input", function () { search(input.value); });
  back.addEventListener("click", goBack);
  reset.addEventListener("click", function () { zoom(frames[0]); });
  document.addEventListener("keydown", key);
  window.addEventListener("resize", resize);
  resize();
})(document.currentScript);
