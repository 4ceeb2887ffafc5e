// Hides the checkout's own settings of Gemini CLI from it: they could name programs to start, hooks,
// and another way to log in. Loaded before the program; what it starts does not inherit it.
'use strict';
const fs = require('fs');
const path = require('path');
delete process.env.NODE_OPTIONS;
const dir = path.join(process.env.ERRAND_WORKDIR || process.cwd(), '.gemini');

function hidden(p) {
  if (typeof p !== 'string' && !(p instanceof URL) && !Buffer.isBuffer(p)) return false;
  const at = path.resolve(p instanceof URL ? decodeURIComponent(p.pathname) : String(p));
  return at === dir || at.startsWith(dir + path.sep);
}

function gone(p) {
  return Object.assign(new Error(`ENOENT: no such file or directory, '${p}'`), { code: 'ENOENT', errno: -2, path: String(p) });
}

function guard(from, names, refuse) {
  for (const name of names) {
    const real = from[name];
    if (typeof real !== 'function') continue;
    from[name] = Object.assign(function (p, ...rest) {
      return hidden(p) ? refuse(p, rest) : real.call(this, p, ...rest);
    }, real);
  }
}

const reads = ['readFile', 'stat', 'lstat', 'readdir', 'opendir', 'open', 'access', 'realpath'];
guard(fs, reads.map((name) => name + 'Sync'), (p) => { throw gone(p); });
guard(fs, ['existsSync'], () => false);
guard(fs, reads, (p, rest) => { process.nextTick(() => rest[rest.length - 1](gone(p))); });
guard(fs.promises, reads, (p) => Promise.reject(gone(p)));
require('module').syncBuiltinESMExports();
