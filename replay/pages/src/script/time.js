// The time axis that tasks, critical path and traffic share: a part of it is chosen by dragging, wheel, keys, buttons or numbers.
var timed = all('[data-end]');

function wholeEnd() {
  var ends = timed.filter(function (one) { return !one.closest('[hidden]'); })
    .map(function (one) { return parseFloat(one.dataset.end); });
  return Math.max.apply(null, ends.concat([1e-9]));
}

function shownTime() {
  var end = wholeEnd();
  return choice.from === null ? { from: 0, to: end } : { from: Math.min(choice.from, end * 0.999), to: choice.to };
}

function showTime(from, to) {
  var end = wholeEnd();
  var width = Math.min(Math.max(to - from, end / 2000), end);
  var begin = Math.min(Math.max((from + to - width) / 2, 0), end - width);
  if (width > end * 0.999) { return choose({ from: null, to: null }); }
  var unit = Math.pow(10, Math.floor(Math.log10(width)) - 3);
  var round = function (value) { return parseFloat((Math.round(value / unit) * unit).toPrecision(9)); };
  choose({ from: round(begin), to: round(begin + width) });
}

function zoomTime(factor, around) {
  var now = shownTime();
  var at = around === undefined ? (now.from + now.to) / 2 : around;
  var width = (now.to - now.from) * factor;
  var share = (at - now.from) / (now.to - now.from);
  showTime(at - share * width, at + (1 - share) * width);
}

function moveTime(share) {
  var now = shownTime();
  var by = (now.to - now.from) * share;
  if (now.from + by < 0) { by = -now.from; }
  showTime(now.from + by, now.to + by);
}

function drawTime() {
  var now = shownTime();
  timed.forEach(function (one) {
    if (one.closest('[hidden]')) { return; }
    var end = parseFloat(one.dataset.end);
    one.style.setProperty('--zoom', String(end / (now.to - now.from)));
    one.style.setProperty('--start', String(now.from / end));
    var axis = one.querySelector('.axis');
    if (axis) { drawAxis(axis, one.querySelector('.grid'), now.from, now.to); }
    all('[data-edge]', one).forEach(function (label) { label.textContent = seconds(parseFloat(now[label.dataset.edge].toPrecision(4))); });
  });
  all('.zoomer').forEach(function (tools) {
    all('input', tools).forEach(function (input) { input.value = String(parseFloat(now[input.dataset.edgeOf].toPrecision(6))); });
  });
}

var DEEDS = {
  in: function () { zoomTime(0.5); },
  out: function () { zoomTime(2); },
  earlier: function () { moveTime(-0.25); },
  later: function () { moveTime(0.25); },
  all: function () { choose({ from: null, to: null }); }
};
var KEYS = { '+': 'in', '=': 'in', '-': 'out', ArrowLeft: 'earlier', ArrowRight: 'later', '0': 'all', Escape: 'all' };

// A drag over an area chooses the time below it.
function brush(area) {
  var ruler = area.querySelector('.ends') || area;
  var begin = null;
  var veil = document.createElement('div');
  veil.className = 'veil';
  veil.hidden = true;
  ruler.append(veil);
  var share = function (event) {
    var box = ruler.getBoundingClientRect();
    return Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1);
  };
  var time = function (share) {
    var now = shownTime();
    return now.from + share * (now.to - now.from);
  };
  area.addEventListener('pointerdown', function (event) {
    var within = event.clientX >= ruler.getBoundingClientRect().left;
    if (event.button === 0 && event.isPrimary && within) { begin = share(event); }
  });
  area.addEventListener('pointermove', function (event) {
    if (begin === null) { return; }
    var at = share(event);
    if (veil.hidden && Math.abs(at - begin) * ruler.clientWidth < 6) { return; }
    if (veil.hidden) { area.setPointerCapture(event.pointerId); }
    veil.hidden = false;
    tip.hidden = true;
    veil.style.left = Math.min(at, begin) * 100 + '%';
    veil.style.width = Math.abs(at - begin) * 100 + '%';
  });
  area.addEventListener('pointerup', function (event) {
    var chosen = begin !== null && !veil.hidden;
    var edges = [time(begin || 0), time(share(event))];
    begin = null;
    veil.hidden = true;
    if (chosen) { showTime(Math.min.apply(null, edges), Math.max.apply(null, edges)); }
  });
  area.addEventListener('pointercancel', function () { begin = null; veil.hidden = true; });
  area.addEventListener('dblclick', DEEDS.all);
  area.addEventListener('wheel', function (event) {
    if (!event.ctrlKey && !event.altKey) { return; }
    event.preventDefault();
    zoomTime(event.deltaY < 0 ? 0.8 : 1.25, time(share(event)));
  }, { passive: false });
}

if (timed.length) {
  all('[data-brush]').forEach(brush);
  all('.zoomer').forEach(function (tools) {
    tools.hidden = false;
    all('[data-do]', tools).forEach(function (button) { button.addEventListener('click', DEEDS[button.dataset.do]); });
    all('input', tools).forEach(function (input) {
      input.addEventListener('change', function () {
        var edges = all('input', tools).map(function (one) { return parseFloat(one.value); });
        if (edges[0] >= 0 && edges[1] > edges[0]) { showTime(edges[0], edges[1]); } else { drawTime(); }
      });
    });
  });
  all('.plot[data-end]').forEach(function (plot) {
    plot.addEventListener('keydown', function (event) {
      var deed = event.ctrlKey || event.metaKey || event.altKey ? null : KEYS[event.key];
      if (deed) {
        event.preventDefault();
        DEEDS[deed]();
      }
    });
  });
  followChoice(drawTime);
  window.addEventListener('resize', drawTime);
  drawTime();
}
