package drill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// series runs scenarios one after the other and prints what came out.
type series struct {
	stdio IO
	opt   Options
	out   string
	json  bool
	span  time.Duration // the list is begun again until it is over

	oneAgent bool // for all runs
	tries    int  // a scenario that fails is run again until it has been run so often; 0 is 1
}

// run returns the exit code.
func (s *series) run(ctx context.Context, list []*Scenario, runs int) int {
	code, results := 0, []Result{}
	if s.oneAgent {
		end, err := s.keepAgent(ctx)
		if err != nil {
			fmt.Fprintln(s.stdio.Err, "drill:", err)
			return 1
		}
		defer end()
	}
	began := time.Now()
	for n := 0; n < runs || time.Since(began) < s.span; n++ {
		for _, sc := range list {
			if n >= runs && time.Since(began) >= s.span {
				break // each ran as often as was asked for
			}
			tried, err := untilPassed(s.tries, func() (Result, error) { return s.one(ctx, sc, n) })
			results = append(results, tried...)
			if errors.Is(err, ErrUsage) {
				fmt.Fprintln(s.stdio.Err, "drill:", err)
				return 2
			}
			if err != nil {
				fmt.Fprintf(s.stdio.Err, "drill: %s: %v\n", sc.Case.Name, err)
				code = 1
				if ctx.Err() != nil {
					return code
				}
				continue
			}
			if !tried[len(tried)-1].Passed {
				code = 1
			}
		}
	}
	if !s.json && len(results) > 1 {
		s.summary(results)
	}
	return code
}

// untilPassed runs a scenario until it passes or has been run so often. It returns
// all results, so that a failure before a success stays to be seen.
func untilPassed(tries int, run func() (Result, error)) (all []Result, err error) {
	for {
		res, err := run()
		if err != nil {
			return all, err
		}
		if all = append(all, res); res.Passed || len(all) >= tries {
			return all, nil
		}
	}
}

// noteEvery is how often the memory of a lasting agent is told.
const noteEvery = time.Minute

// keepAgent has one agent serve all runs. The function that it returns ends it
// and tells how its memory went.
func (s *series) keepAgent(ctx context.Context) (end func(), err error) {
	dir := s.out
	if dir == "" {
		if dir, err = os.MkdirTemp("", "spinguard-agent-"); err != nil {
			return nil, err
		}
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	if dir, err = freshDir(filepath.Join(dir, "agent")); err != nil {
		return nil, err
	}
	kept := &lasting{dir: dir}
	s.opt.lasting = kept
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { s.watchMemory(ctx, kept) })
	return func() {
		cancel()
		wg.Wait()
		kept.stop()
		if !s.json {
			fmt.Fprintln(s.stdio.Out, kept.summary())
		}
	}, nil
}

func (s *series) watchMemory(ctx context.Context, kept *lasting) {
	for pause(ctx, noteEvery/4) == nil {
		p, ok := kept.note()
		if ok && !s.json && p.at%noteEvery < noteEvery/4 {
			fmt.Fprintf(s.stdio.Out, "  agent        %s: %.1f MiB, %.1f s of CPU\n", p.at.Round(time.Second), mib(p.rss), p.cpu)
		}
	}
}

func (s *series) one(ctx context.Context, sc *Scenario, n int) (Result, error) {
	opt := s.opt
	if s.out != "" {
		dir, err := freshDir(filepath.Join(s.out, sc.Case.Name))
		if err != nil {
			return Result{}, err
		}
		opt.Out = dir
	}
	if !s.json {
		s.title(sc, n)
		opt.Say = s.line
	}
	res, err := Run(ctx, sc, opt)
	if err != nil {
		return res, err
	}
	data, err := json.Marshal(&res)
	if err != nil {
		return res, err
	}
	if err := os.WriteFile(filepath.Join(res.Out, "result.json"), append(data, '\n'), 0o644); err != nil {
		return res, err
	}
	if s.json {
		_, err = fmt.Fprintf(s.stdio.Out, "%s\n", data)
		return res, err
	}
	s.table(&res)
	return res, nil
}

// freshDir makes dir, or dir-2, dir-3 and so on where it exists already: an
// older result is never mixed with a new one.
func freshDir(dir string) (string, error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	name := dir
	for n := 2; n < 100_000; n++ {
		err := os.Mkdir(name, 0o755)
		if err == nil {
			return name, nil
		}
		if !errors.Is(err, os.ErrExist) {
			return "", err
		}
		name = fmt.Sprintf("%s-%d", dir, n)
	}
	return "", fmt.Errorf("%s: too many results already", dir)
}
