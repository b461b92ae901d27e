#!/bin/sh
# plan.sh makes a new plan from what is measured and puts it in service, unless
# it moves too much. Run it from cron, a systemd timer, a CronJob or CI.
#
#   FLEET       folder of the operator's fleet: engines, policy, names  (required)
#   STATE       folder for inputs and plans, kept from run to run       (required)
#   WEIGHTS     the weight file that agents watch          (default: $STATE/weights.toml)
#   PROMETHEUS  URL of the Prometheus server                            (required)
#   IRB_PUB     public key file                                     (required)
#   IRB_KEY_FILE  secret key file                  (default: the key in IRB_KEY)
#   EVERY       time until the next run                                 (default: 15m)
#   MAX_MOVE    share of traffic that may move without a person's yes   (default: 20%)
#   COLLECT_FLAGS  more flags of irbctl collect, such as --bearer-token-file FILE
#
# Exit codes are irbctl's: 0 in service, 1 failure or too much moves, 2 bad
# input, 3 infeasible, 4 verification failed. Whatever fails, the weight file in
# service stays, and agents serve on.
set -eu
: "${FLEET:?}" "${STATE:?}" "${PROMETHEUS:?}" "${IRB_PUB:?}"
WEIGHTS=${WEIGHTS:-$STATE/weights.toml}
EVERY=${EVERY:-15m}
MAX_MOVE=${MAX_MOVE:-20%}

# One run at a time, from reading the plan in service to replacing it.
exec 9>"$STATE/plan.lock"
if ! flock -n 9; then
	echo "plan.sh: another run holds $STATE/plan.lock; nothing done" >&2
	exit 1
fi

next=$STATE/next.toml
set -- ${IRB_KEY_FILE:+--key "$IRB_KEY_FILE"}
rm -f "$next"

# shellcheck disable=SC2086 # the flags are words
irbctl collect "$FLEET" -o "$STATE/inputs" --prometheus "$PROMETHEUS" --every "$EVERY" ${COLLECT_FLAGS:-}

if [ -e "$WEIGHTS" ]; then
	irbctl solve "$STATE/inputs" -o "$next" "$@" --previous "$WEIGHTS" --previous-pub "$IRB_PUB"
	irbctl verify "$next" --pub "$IRB_PUB" --inputs "$STATE/inputs" --previous "$WEIGHTS"
	irbctl diff "$WEIGHTS" "$next" --max-move "$MAX_MOVE" || {
		code=$?
		[ $code -eq 1 ] || exit $code # not for what moves
		mv "$next" "$STATE/rejected.toml"
		echo "plan.sh: the plan in service stays; to take the new one: mv $STATE/rejected.toml $WEIGHTS" >&2
		exit $code
	}
	cp -p "$WEIGHTS" "$STATE/previous.toml"
else
	irbctl solve "$STATE/inputs" -o "$next" "$@"
	irbctl verify "$next" --pub "$IRB_PUB" --inputs "$STATE/inputs"
fi

# Replaced in one step: the new file is made whole beside the old one first.
cp "$next" "$WEIGHTS.new"
mv "$WEIGHTS.new" "$WEIGHTS"
rm -f "$next" "$STATE/rejected.toml" # which is older than what is in service now
