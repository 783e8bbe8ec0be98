package drill

import "strings"

const negativePrefix = "negative-"

// negatives names the scenarios in which the agent must leave everything alone,
// on a crowded machine too: cases of workers that are busy (kind D) or fine
// (kind F), and what else looks bad from outside. A near miss is none of them:
// how near it is to the threshold depends on who else uses the machine's cores.
func negatives() []string {
	var out []string
	for _, name := range caseNames() {
		if calmCase(name) {
			out = append(out, casePrefix+name)
		}
	}
	for _, name := range Names() {
		if strings.HasPrefix(name, negativePrefix) {
			out = append(out, name)
		}
	}
	return out
}

// faults names all other cases: those in which something is wrong, or nearly.
func faults() []string {
	var out []string
	for _, name := range caseNames() {
		if !calmCase(name) {
			out = append(out, casePrefix+name)
		}
	}
	return out
}

func calmCase(name string) bool {
	sc, err := Find(casePrefix + name)
	return err == nil && sc.Case.calm() && name != "near-miss"
}

// negativeBy gives the healthy proxy of scenarios/negative its bad looks.
func negativeBy(command string) func(*Scenario) {
	return func(sc *Scenario) { sc.Case.TriggerCommand, sc.backends = command, false }
}

// Each client sends 1,500 requests at once; nginx serves them one after the
// other within one turn of its loop, which lasts for seconds.
const pipelined = `for c in 1 2 3; do (
  exec 3<>/dev/tcp/127.0.0.1/$PORT
  for i in $(seq 1500); do printf 'GET /render HTTP/1.1\r\nHost: x\r\n\r\n'; done >&3
  timeout 6 cat <&3 >/dev/null
) & done; wait`

const hogs = `for i in $(seq $((2 * $(nproc)))); do timeout 6 sh -c 'while :; do :; done' & done; wait`

const debugger = `set -- $WORKERS; timeout 30 gdb -batch -p $1 -ex 'shell sleep 4' -ex detach; sleep 1`

// The agent sees nothing of the pause but its ends.
const paused = `kill -STOP $AGENT $WORKERS; sleep 4; kill -CONT $WORKERS $AGENT; sleep 1`

const frozen = `d=/sys/fs/cgroup/freezer; [ -d $d ] || d=/sys/fs/cgroup; d=$d/negative-$PORT
mkdir $d && for p in $WORKERS; do echo $p > $d/cgroup.procs; done
freeze() { if [ -e $d/cgroup.freeze ]; then echo $1 > $d/cgroup.freeze; else echo $2 > $d/freezer.state; fi; }
freeze 1 FROZEN; sleep 4; freeze 0 THAWED; sleep 1`

const unfreeze = `for d in /sys/fs/cgroup/negative-$PORT /sys/fs/cgroup/freezer/negative-$PORT; do
  for i in 1 2 3 4 5 6 7 8 9 10; do [ ! -d $d ] || rmdir $d 2>/dev/null || sleep 0.3; done
  [ ! -d $d ] || exit 1
done`

func negativeFrozen(sc *Scenario) {
	negativeBy(frozen)(sc)
	sc.Case.CleanupCommand = unfreeze
}
