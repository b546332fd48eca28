// A table that is larger than its frame says that there is more, and where.
all('.scroll').forEach(function (frame) {
  var hint = document.createElement('p');
  hint.className = 'more';
  hint.hidden = true;
  frame.before(hint);
  var tell = function () {
    var right = frame.scrollWidth - frame.clientWidth - frame.scrollLeft > 2;
    var left = frame.scrollLeft > 2;
    var below = frame.scrollHeight - frame.clientHeight - frame.scrollTop > 2;
    var said = [];
    if (right || left) { said.push(right ? 'more columns on the right →' : '← more columns on the left'); }
    if (below) { said.push('more rows below ↓'); }
    hint.textContent = said.join(' · ');
    // Its place stays while the table can be scrolled at all: nothing must jump under the finger.
    hint.hidden = frame.scrollWidth <= frame.clientWidth + 2 && frame.scrollHeight <= frame.clientHeight + 2;
    frame.classList.toggle('more-right', right);
  };
  frame.addEventListener('scroll', tell);
  new ResizeObserver(tell).observe(frame);
});
