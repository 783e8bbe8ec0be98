// Package drill injects a fault into a private proxy and judges what the agent
// made of it. A drill is a case folder (scenarios/cases/README.md says what one
// holds) or one of the project's own scenarios. It starts the proxy on free
// ports of 127.0.0.1, an agent that sees only this proxy, load and probes; it
// fires the fault, follows the incidents on disk and the agent's API, looks at
// the workers itself, and ends every process that it started.
//
// The parts, in the order of a run:
//
//	case, parse, check, vars     case.yaml
//	lab, proxy, brood, shell     folders, processes, and their certain end
//	agent, agentconfig           the agent as a program of its own
//	trigger, storm, load, probe  traffic
//	run, follow, look            the phases, and what is seen meanwhile
//	judge, recovery, rail        a pure comparison of record and case
//	command, series, print       the command "spinguard drill"
package drill
