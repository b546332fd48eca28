// What is under the pointer, and the theme.
var root = document.documentElement;
var tip = document.getElementById('tip');

function all(selector, inside) {
  return Array.prototype.slice.call((inside || document).querySelectorAll(selector));
}

function placeTip(x, y) {
  var box = tip.getBoundingClientRect();
  var left = Math.min(x + 14, window.innerWidth - box.width - 8);
  var top = y + 18 + box.height > window.innerHeight ? y - box.height - 12 : y + 18;
  tip.style.transform = 'translate(' + Math.max(8, left) + 'px,' + Math.max(8, top) + 'px)';
}

document.addEventListener('pointerover', function (event) {
  var target = event.target.closest ? event.target.closest('[data-tip]') : null;
  tip.hidden = !target;
  if (target) {
    tip.textContent = target.getAttribute('data-tip');
    placeTip(event.clientX, event.clientY);
  }
});
document.addEventListener('pointermove', function (event) {
  if (!tip.hidden) { placeTip(event.clientX, event.clientY); }
});
document.addEventListener('scroll', function () { tip.hidden = true; }, true);

var theme = document.getElementById('theme');
theme.hidden = false;
theme.addEventListener('click', function () {
  var dark = root.dataset.theme
    ? root.dataset.theme === 'dark'
    : window.matchMedia('(prefers-color-scheme: dark)').matches;
  root.dataset.theme = dark ? 'light' : 'dark';
});
