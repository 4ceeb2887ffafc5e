# Reports the network access of the agent's user, one fact per line. It uses bash, because other shells may lack
# /dev/tcp.
echo "routes: $(tail -n +2 /proc/net/route | wc -l)"
echo "interfaces: $(tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' ' | sort | paste -sd,)"
reach() { if bash -c 'exec 3<>"/dev/tcp/$0"' "$1" 2>/dev/null; then echo "$2: reached"; else echo "$2: out of reach"; fi; }
reach 192.0.2.1/443 "an address outside"
reach MODEL_ADDRESS "the model itself"
reach FORGE_ADDRESS "GitHub itself"
reach 127.0.0.1/9413 "the tether"
