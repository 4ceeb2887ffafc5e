# Runs Aider as an agent. It leaves git alone: what it has changed is committed by errand's runner. The
# prompt comes in a file, with our rules before it, for a message that begins with a slash would be a command.
set -eu
run="${ERRAND_SYSTEM_FILE%/*}"
prompt="$run/aider-prompt.md"
{ cat "$ERRAND_SYSTEM_FILE"; printf '\n\n'; cat; } > "$prompt"
cd "$ERRAND_WORKDIR"

# Aider finds a model's API by what its name begins with. A .env of the checkout counts for more than the
# environment, and the file that is named counts for more than that.
case "${ERRAND_MODEL:-}" in
claude*) model="anthropic/$ERRAND_MODEL" api=ANTHROPIC base="${ERRAND_MODEL_URL:-}" ;;
*) model="openai/${ERRAND_MODEL:-}" api=OPENAI base="${ERRAND_MODEL_URL:-}/v1" ;;
esac
umask 077
cat > "$run/aider.env" <<END
${api}_API_BASE=$base
${api}_BASE_URL=$base
${api}_API_KEY=${ERRAND_MODEL_TOKEN:-}
NO_PROXY=127.0.0.1,localhost
no_proxy=127.0.0.1,localhost
LITELLM_LOCAL_MODEL_COST_MAP=True
END
umask 022

# Without git it knows only the files that it is given: those that the prompt names.
tr -cs 'A-Za-z0-9_./-' '\n' < "$prompt" | sed 's/^\.\///; s/\.*$//' | grep -v '^-' | sort -u > "$run/aider.words" || true
git ls-files | grep -Fx -f "$run/aider.words" | head -n 40 > "$run/aider.files" || true
while IFS= read -r file; do
	set -- "$@" --file "$file"
done < "$run/aider.files"

exec aider --env-file "$run/aider.env" --no-git --yes-always --message-file "$prompt" \
	--model "$model" --weak-model "$model" --no-show-model-warnings --no-check-update --no-analytics \
	--no-pretty --no-stream --no-auto-lint --no-auto-test --no-suggest-shell-commands --no-detect-urls \
	--input-history-file "$run/aider.input" --chat-history-file "$run/aider.chat" "$@"
