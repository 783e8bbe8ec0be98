package main

import (
	"fmt"
	"strings"

	"github.com/spinguard/spinguard/doctor"
	"github.com/spinguard/spinguard/watchdog"
)

func runDoctor(e env, args []string) error {
	f := newFlags(e, "doctor", "[--config FILE] [--json]",
		"Says what this host lacks and which settings will hurt, each with the remedy. Exit code 1 if something fails.",
		"  spinguard doctor\n  spinguard doctor --config /etc/spinguard/agent.yaml\n")
	path := f.String("config", "", "also check this configuration `FILE`")
	asJSON := f.Bool("json", false, "print JSON")
	if _, err := f.parse(args, 0, 0); err != nil {
		return err
	}
	list := []doctor.Finding{}
	var ways doctor.Ways
	if *path != "" {
		var checked doctor.Finding
		checked, ways = checkConfig(*path)
		list = append(list, checked)
	}
	list = append(list, doctor.Host{Root: "/"}.Kernel()...)
	list = append(list, doctor.Sampler(), selfTest(e))
	list = append(list, doctor.Proxies(ways)...)
	if *asJSON {
		if err := printJSON(e.stdout, list); err != nil {
			return err
		}
	} else {
		printFindings(e, list)
	}
	for _, finding := range list {
		if finding.Level == doctor.Fail {
			return errSilent
		}
	}
	return nil
}

// checkConfig checks a configuration of the agent, and says what it has for
// proxies without the library.
func checkConfig(path string) (doctor.Finding, doctor.Ways) {
	cfg, err := loadConfig(path)
	if err != nil {
		found := strings.TrimLeft(strings.TrimPrefix(err.Error(), "configuration"), ": ") // the check says that word
		return doctor.Finding{Check: "configuration", Level: doctor.Fail, Found: found, Why: "the agent would not start with it", Remedy: "see docs/configuration.md"}, doctor.Ways{}
	}
	ways := doctor.Ways{Culprits: len(cfg.Culprits) > 0, Hook: cfg.Hook.File != "" || len(cfg.Hook.Command) > 0}
	return doctor.Finding{Check: "configuration", Level: doctor.OK, Found: path}, ways
}

func printFindings(e env, list []doctor.Finding) {
	colours := map[doctor.Level]string{doctor.OK: green, doctor.Warn: yellow, doctor.Fail: red}
	for _, f := range list {
		fmt.Fprintf(e.stdout, "%s  %s: %s\n", e.paint(colours[f.Level], fmt.Sprintf("%-4s", f.Level)), printable(f.Check), printable(f.Found))
		if f.Why != "" {
			fmt.Fprintf(e.stdout, "      why:    %s\n      remedy: %s\n", printable(f.Why), printable(f.Remedy))
		}
	}
}

// selfTest unwinds a known child on this kernel.
func selfTest(e env) doctor.Finding {
	report, err := watchdog.SelfTest(e.ctx)
	f := doctor.Finding{Check: "self-test", Level: doctor.OK, Found: report.String()}
	switch {
	case err != nil:
		f.Level, f.Found, f.Why, f.Remedy = doctor.Fail, err.Error(), "whether stacks are whole is not known", "see the message"
	case !report.OK():
		f.Level, f.Why, f.Remedy = doctor.Warn, "evidence will be incomplete", "see the message; kernel.kptr_restrict=0 shows kernel names"
	}
	return f
}
