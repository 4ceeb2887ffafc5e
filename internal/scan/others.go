package scan

import (
	"path"
	"slices"
	"strings"
)

// jvm proposes the commands of Maven and Gradle.
func jvm(x *index) (list []proposal) {
	const language = "Java"
	for _, dir := range x.dirs("Java builds", "pom.xml", "build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts") {
		if file := join(dir, "pom.xml"); x.has(file) {
			run := "mvn"
			if x.has(join(dir, "mvnw")) {
				run = "./mvnw"
			}
			install := " -B -q dependency:go-offline"
			if strings.Contains(x.text(file), "<modules>") { // modules need each other's classes, which only a build makes
				install = " -B -q test-compile"
			}
			list = append(list,
				proposal{language: language, kind: kindInstall, dir: dir, run: in(dir, run+install), origin: at(file, "")},
				proposal{language: language, kind: kindTest, dir: dir, run: in(dir, run+" -B verify"), origin: at(file, "the usual build of Maven")})
			continue
		}
		file := x.first(dir, "build.gradle.kts", "build.gradle", "settings.gradle.kts", "settings.gradle")
		run := "gradle"
		if x.has(join(dir, "gradlew")) {
			run = "./gradlew"
		}
		list = append(list,
			proposal{language: language, kind: kindInstall, dir: dir, run: in(dir, run+" --no-daemon testClasses"), origin: at(file, "")},
			proposal{language: language, kind: kindTest, dir: dir, run: in(dir, run+" --no-daemon check"), origin: at(file, "the usual checks of Gradle")})
	}
	return list
}

// rust proposes the commands of Cargo.
func rust(x *index) (list []proposal) {
	const language = "Rust"
	for _, dir := range x.dirs("Cargo.toml", "Cargo.toml") {
		file, fetch := join(dir, "Cargo.toml"), "cargo fetch"
		if x.has(join(dir, "Cargo.lock")) {
			fetch = "cargo fetch --locked"
		}
		test := "cargo test"
		if strings.Contains(x.text(file), "[workspace]") {
			test = "cargo test --workspace"
		}
		list = append(list,
			proposal{language: language, kind: kindInstall, dir: dir, run: in(dir, fetch), origin: at(file, "")},
			proposal{language: language, kind: kindTest, dir: dir, run: in(dir, test), origin: at(file, "the usual tests of Rust")})
		if format := x.first(dir, "rustfmt.toml", ".rustfmt.toml"); format != "" {
			list = append(list, proposal{language: language, kind: kindLint, dir: dir, run: in(dir, "cargo fmt --check"), origin: at(format, "")})
		}
	}
	return list
}

// ruby proposes the commands of Bundler.
func ruby(x *index) (list []proposal) {
	const language = "Ruby"
	for _, dir := range x.dirs("Gemfile", "Gemfile") {
		list = append(list, proposal{language: language, kind: kindInstall, dir: dir, run: in(dir, "bundle install"),
			origin: at(join(dir, "Gemfile"), ""), fresh: true})
		if f := x.first(dir, ".rubocop.yml"); f != "" && strings.Contains(x.text(join(dir, "Gemfile")), "rubocop") {
			list = append(list, proposal{language: language, kind: kindLint, dir: dir, run: in(dir, "bundle exec rubocop"), origin: at(f, "")})
		}
		switch {
		case x.first(dir, ".rspec", "spec/spec_helper.rb") != "":
			list = append(list, proposal{language: language, kind: kindTest, dir: dir, run: in(dir, "bundle exec rspec"),
				origin: at(x.first(dir, ".rspec", "spec/spec_helper.rb"), "")})
		case x.has(join(dir, "bin/rails")):
			list = append(list, proposal{language: language, kind: kindTest, dir: dir, run: in(dir, "bin/rails test"), origin: at(join(dir, "bin/rails"), "")})
		case x.has(join(dir, "Rakefile")):
			list = append(list, proposal{language: language, kind: kindTest, dir: dir, run: in(dir, "bundle exec rake test"), origin: at(join(dir, "Rakefile"), "")})
		}
	}
	return list
}

// php proposes the commands of Composer.
func php(x *index) (list []proposal) {
	const language = "PHP"
	for _, dir := range x.dirs("composer.json", "composer.json") {
		file := join(dir, "composer.json")
		list = append(list, proposal{language: language, kind: kindInstall, dir: dir, run: in(dir, "composer install --no-interaction"), origin: at(file, ""), fresh: true})
		scripts := composerScripts(x.text(file))
		for _, name := range named(scripts) {
			k, _ := scriptKind(name)
			list = append(list, proposal{language: language, kind: k, dir: dir, run: in(dir, "composer run "+name), origin: at(file, "script "+name),
				rank: script})
		}
		if f := x.first(dir, "phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml"); f != "" {
			list = append(list, proposal{language: language, kind: kindTest, dir: dir, run: in(dir, "vendor/bin/phpunit"), origin: at(f, "")})
		}
		if f := x.first(dir, "phpstan.neon", "phpstan.neon.dist"); f != "" {
			list = append(list, proposal{language: language, kind: kindLint, dir: dir, run: in(dir, "vendor/bin/phpstan analyse --no-progress"), origin: at(f, "")})
		}
	}
	return list
}

// composerScripts returns the names of the scripts in a composer.json, sorted.
func composerScripts(text string) []string {
	var names []string
	for name := range readPackageScripts(text) {
		if scriptName.MatchString(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// dotnet proposes the commands of .NET.
func dotnet(x *index) []proposal {
	var projects []string
	for _, p := range x.paths {
		if ext := path.Ext(p); ext == ".sln" || ext == ".slnx" || ext == ".csproj" || ext == ".fsproj" {
			projects = append(projects, p)
		}
	}
	if len(projects) == 0 {
		return nil
	}
	slices.SortStableFunc(projects, func(a, b string) int { return depth(a) - depth(b) })
	dir := path.Dir(projects[0])
	if dir != "." && !plainDir.MatchString(dir) {
		return nil
	}
	const language = "C#"
	origin := at(projects[0], "")
	list := []proposal{
		{language: language, kind: kindInstall, dir: dir, run: in(dir, "dotnet restore"), origin: origin},
		{language: language, kind: kindBuild, dir: dir, run: in(dir, "dotnet build"), origin: origin},
	}
	isTest := func(p string) bool { return strings.Contains(strings.ToLower(path.Base(p)), "test") }
	if i := slices.IndexFunc(projects, isTest); i >= 0 {
		list = append(list, proposal{language: language, kind: kindTest, dir: dir, run: in(dir, "dotnet test"), origin: at(projects[i], "")})
	}
	return list
}

// elixir proposes the commands of Mix.
func elixir(x *index) (list []proposal) {
	const language = "Elixir"
	for _, dir := range x.dirs("mix.exs", "mix.exs") {
		file := join(dir, "mix.exs")
		list = append(list,
			proposal{language: language, kind: kindInstall, dir: dir, run: in(dir, "mix deps.get"), origin: at(file, ""), fresh: true},
			proposal{language: language, kind: kindTest, dir: dir, run: in(dir, "mix test"), origin: at(file, "the usual tests of Elixir")})
	}
	return list
}

// native proposes the commands of CMake, Meson and Autotools. They build outside of the checkout, so that nothing is committed.
func native(x *index) []proposal {
	const language = "C/C++"
	switch {
	case x.has("CMakeLists.txt"):
		build := "cmake -S . -B ~/build && cmake --build ~/build --parallel 2"
		list := []proposal{{language: language, kind: kindBuild, dir: ".", run: build, origin: at("CMakeLists.txt", "")}}
		if text := x.text("CMakeLists.txt"); strings.Contains(text, "enable_testing") || strings.Contains(text, "include(CTest)") {
			list = append(list, proposal{
				language: language, kind: kindTest, dir: ".", run: build + " && ctest --test-dir ~/build --output-on-failure", origin: at("CMakeLists.txt", "tests of CTest"),
			})
		}
		return list
	case x.has("meson.build"):
		return []proposal{{language: language, kind: kindTest, dir: ".", run: "meson setup ~/build && meson test -C ~/build", origin: at("meson.build", "")}}
	case x.has("configure"):
		return []proposal{{language: language, kind: kindTest, dir: ".", run: "./configure && make check", origin: at("configure", "the usual tests of Autotools")}}
	}
	return nil
}
