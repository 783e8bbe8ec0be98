package main

import "github.com/spinguard/spinguard/drill"

func runDrill(e env, args []string) error {
	switch drill.Command(e.ctx, drill.IO{Out: e.stdout, Err: e.stderr, Colour: e.colour}, args) {
	case 0:
		return nil
	case 2:
		return errUsageSaid
	}
	return errSilent
}
