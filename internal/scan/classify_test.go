package scan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestClassify: commands of CI that test nothing, publish, change files or never end are not taken over.
func TestClassify(t *testing.T) {
	t.Parallel()
	for want, lines := range map[string][]string{
		"tests": {
			"go test ./...", "go test -race -count=1 ./...", "./gradlew build", "./gradlew --no-daemon :app:check -x integrationTest", "./gradlew build --exclude-task=lint",
			"mvn -B verify", "./mvnw test -Pci", "cargo test --release --locked", "cargo nextest run", "tox", "tox -e py311,lint", "tox run -e py", "tox -epy3", "tox -p auto", "nox",
			"nox -s tests lint", "nox -s tests-3.11", "uv run pytest", "uv run --frozen --extra dev pytest -q", "uv run --with=x tox -e py", "pytest -n auto", "npm test", "npm run test --silent",
			"dotnet test --no-build -c Release", "bundle exec rake", "bin/rails test", "mix test",
		},
		"lint":  {"go vet ./...", "tox -e lint", "nox -s mypy", "uv run ruff check .", "uv run ruff format --check .", "cargo clippy", "npm run lint"},
		"build": {"go build ./...", "dotnet build --configuration Release", "cargo build --release", "npm run build --if-present"},
		"": {
			"./gradlew build -x test", "./gradlew assemble -x test", "gradle build -xtest", "./gradlew build --exclude-task test", "./gradlew build --exclude-task=:app:test", "./gradlew build -x",
			"./gradlew check -m", "./gradlew check --dry-run", "./gradlew build closeAndReleaseRepository", "./gradlew build uploadArchives", "./gradlew build Publish",
			"./mvnw test -pl core", "mvn clean test --projects=core", "./gradlew test -Pjava=8", "mvn verify -DskipTests", "mvn verify -DskipTests=true", "./mvnw verify -Dmaven.test.skip=true", "mvn verify -Prelease", "mvn test -o", "mvn verify sonar:sonar", "mvn -fn verify",
			"mvn test -Dmaven.test.failure.ignore=true", "cargo test --no-run", "cargo nextest list", "cargo test --offline", "cargo clippy --fix",
			"go test -fuzz=Fuzz ./a", "go test -c ./a", "go test --fuzz Fuzz ./a", "go test -run=NONE -bench=. ./...", "go test -list . ./...",
			"tox -e publish", "tox -e py,release", "tox run -e docs", "tox -e ALL", "tox --notest", "tox config", "nox -s publish", "nox -s tests deploy_docs", "nox --list", "tox -e", "tox -e=",
			"uv run tox -e publish", "uv run tox -e docs", "poetry run nox -s docs", "uv run --with pytest python seed.py", "uv run --unknown pytest", "poetry -C x run pytest", "uv run ruff format",
			"uv run pytest --collect-only", "pytest --help", "npm run build --watch", "npm run test --publish", "npm test --dry-run", "dotnet test --list-tests", "dotnet build /t:Publish", "dotnet build -c RELEASEPUBLISH",
			"bundle exec rake test release", "bundle exec rake -n test", "rake test --dry-run", "make test deploy", "cargo build --release-upload",
		},
	} {
		for _, line := range lines {
			_, k, ok := classify(strings.Fields(line))
			got := ""
			if ok {
				got = map[kind]string{kindTest: "tests", kindLint: "lint", kindBuild: "build"}[k]
			}
			if got != want {
				t.Errorf("%q: got %q, want %q", line, got, want)
			}
		}
	}
}

// TestWorkflows: commands are taken over from workflows for changes only, in the folder in which CI runs them.
func TestWorkflows(t *testing.T) {
	t.Parallel()
	job := func(lines ...string) string {
		return "on: push\njobs:\n  all:\n    steps:\n    - run: |\n        " + strings.Join(lines, "\n        ") + "\n"
	}
	const rest = "\njobs: {all: {steps: [{run: make test}]}}\n"
	for name, row := range map[string]struct {
		workflow string
		want     []string
	}{
		"cd":                       {workflow: job("cd web", "npm test"), want: []string{"(cd web && npm test)"}},
		"cd twice":                 {workflow: job("cd web && npm test", "cd ..", "make test"), want: []string{"(cd web && npm test)", "make test"}},
		"quotes":                   {workflow: job("make lint", `cd "web" && npm test`)},
		"a variable":               {workflow: job(`cd "$GITHUB_WORKSPACE/web" && npm test`)},
		"a bare variable":          {workflow: job("cd $GITHUB_WORKSPACE/web", "npm test")},
		"pushd":                    {workflow: job("pushd web", "npm test", "popd", "make test")},
		"absolute":                 {workflow: job("cd /opt/x", "npm test")},
		"home":                     {workflow: job("cd", "npm test")},
		"home by its sign":         {workflow: job("cd ~/x", "npm test")},
		"back":                     {workflow: job("cd web", "cd -", "npm test")},
		"an option":                {workflow: job("cd -P web", "npm test")},
		"a builtin":                {workflow: job("builtin cd web", "npm test")},
		"outside":                  {workflow: job("cd ..", "npm test")},
		"outside and back":         {workflow: job("cd ../app", "npm test")},
		"or":                       {workflow: job("cd web || exit 1", "npm test")},
		"redirected":               {workflow: job("cd web > log", "npm test")},
		"if":                       {workflow: job("if true; then cd web; fi", "npm test")},
		"subshell":                 {workflow: job("(cd web && npm ci)", "npm test"), want: []string{"npm test"}},
		"default of the workflow":  {workflow: "on: push\ndefaults: {run: {working-directory: web}}\njobs: {all: {steps: [{run: npm test}]}}\n", want: []string{"(cd web && npm test)"}},
		"default of the job":       {workflow: "on: push\ndefaults: {run: {working-directory: a}}\njobs: {all: {defaults: {run: {working-directory: web}}, steps: [{run: npm test}]}}\n", want: []string{"(cd web && npm test)"}},
		"of the step":              {workflow: "on: push\ndefaults: {run: {working-directory: a}}\njobs: {all: {steps: [{run: npm test, working-directory: web}]}}\n", want: []string{"(cd web && npm test)"}},
		"of the step, an absolute": {workflow: "on: push\njobs: {all: {steps: [{run: npm test, working-directory: /opt/x}]}}\n"},
		"of the step, an expression": {
			workflow: "on: push\njobs: {all: {steps: [{run: \"cd ..\\nnpm test\", working-directory: '${{ x }}'}]}}\n",
		},
		"PowerShell":        {workflow: "on: push\njobs: {all: {steps: [{run: npm test, shell: pwsh}]}}\n"},
		"bash":              {workflow: "on: push\njobs: {all: {steps: [{run: npm test, shell: bash}]}}\n", want: []string{"npm test"}},
		"Windows":           {workflow: "on: push\njobs: {all: {runs-on: windows-latest, steps: [{run: npm test}]}}\n"},
		"a secret":          {workflow: "on: push\njobs: {all: {steps: [{run: npm test, env: {A: b, TOKEN: '${{ secrets.X }}'}}]}}\n"},
		"a plain variable":  {workflow: "on: push\njobs: {all: {steps: [{run: npm test, env: {A: b}}]}}\n", want: []string{"npm test"}},
		"tags only":         {workflow: "on: {push: {tags: ['v*']}}" + rest},
		"all but some tags": {workflow: "on: {push: {tags-ignore: ['v*']}}" + rest},
		"tags and branches": {workflow: "on: {push: {tags: ['v*'], branches: [main]}}" + rest, want: []string{"make test"}},
		"tags, and changes": {workflow: "on: {push: {tags: ['v*']}, pull_request: {}}" + rest, want: []string{"make test"}},
		"any push":          {workflow: "on: {push: }" + rest, want: []string{"make test"}},
		"a schedule":        {workflow: "on: {schedule: [{cron: '1 1 * * *'}]}" + rest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const file = ".github/workflows/ci.yml"
			var got []string
			for _, c := range newIndex(Tree{Paths: []string{file}, Files: map[string]string{file: row.workflow}}).ciCommands() {
				got = append(got, c.run)
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
