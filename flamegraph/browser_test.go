package flamegraph

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// step is something that a tab does.
type step = chromedp.Action[chromedp.Void]

// send makes a step of a protocol command.
func send[P, R any](command cdp.Command[P, R], params P) step {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, command, params)
		return err
	})
}

// tab is a page of a real browser that has no network.
type tab struct {
	t    *testing.T
	ctx  context.Context
	mu   sync.Mutex
	seen []string // requests that are not for the file itself, errors, dialogs
}

// openBrowser starts one headless Chromium for a test and its subtests.
func openBrowser(t *testing.T) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		missing(t, "chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-background-networking", true), chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(1280, 900))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // waits until the browser is gone
		cancel()
	})
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	return ctx
}

// openFile loads a file as file://… and fails the test at its end if the page
// asked for anything else, threw, or opened a dialog.
func openFile(t *testing.T, browser context.Context, file string, steps ...step) *tab {
	t.Helper()
	b := newTab(t, browser, "file://"+file)
	b.do(append(steps, chromedp.Navigate("file://"+file))...)
	return b
}

// newTab opens an empty tab that may ask for addresses that begin so.
func newTab(t *testing.T, browser context.Context, allowed string) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(ctx, 2*time.Minute)
	b := &tab{t: t, ctx: ctx}
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(b.seen) > 0 {
			t.Errorf("the page did what it must not: %q", b.seen)
		}
		stop()
		cancel()
	})
	err := chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *network.EventRequestWillBeSent:
			if !strings.HasPrefix(e.Request.URL, allowed) && !strings.HasPrefix(e.Request.URL, "data:") {
				b.note("request for " + e.Request.URL)
			}
		case *cdpruntime.EventExceptionThrown:
			b.note("exception " + e.ExceptionDetails.Text + " " + e.ExceptionDetails.Exception.Description)
		case *cdppage.EventJavascriptDialogOpening:
			b.note("dialog " + e.Message)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	b.do(send(network.Enable, network.EnableParams{}), send(cdpruntime.Enable, cdp.Empty{}),
		send(network.OverrideNetworkState, network.OverrideNetworkStateParams{Offline: true, DownloadThroughput: -1, UploadThroughput: -1}))
	return b
}

func (b *tab) note(s string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seen = append(b.seen, s)
}

func (b *tab) do(steps ...step) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// text evaluates an expression that gives a string, or gives what it threw.
func (b *tab) text(expression string) string {
	b.t.Helper()
	out, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("(() => { try { return String("+expression+") } catch (e) { return String(e) } })()"))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return out
}

// want evaluates an expression until it gives the text; until then it may throw,
// since a page is not drawn at once.
func (b *tab) want(expression, want string) {
	b.t.Helper()
	got := ""
	for range 100 {
		if got = b.text(expression); got == want {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	b.t.Errorf("%s: %q, want %q", expression, got, want)
}

// click presses the mouse in the middle of an element, once it lies still and
// nothing lies over it: a page that has just been drawn anew may move.
func (b *tab) click(expression string) {
	b.t.Helper()
	middle := "(() => { const e = " + expression + "; e.scrollIntoView({block: 'nearest'}); const r = e.getBoundingClientRect();" +
		" const x = r.x + r.width / 2, y = r.y + r.height / 2; return [x, y, e.contains(document.elementFromPoint(x, y)) ? 1 : 0] })()"
	var before []float64
	for range 100 {
		at, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]float64](middle))
		if err != nil {
			b.t.Fatalf("%s: %v", expression, err)
		}
		if slices.Equal(at, before) && at[2] == 1 {
			b.do(chromedp.MouseClickXY(at[0], at[1]))
			return
		}
		before = at
		time.Sleep(20 * time.Millisecond)
	}
	b.t.Errorf("%s: no place to click on, at last %v", expression, before)
}

func (b *tab) keys(s string) {
	b.t.Helper()
	b.do(chromedp.KeyEvent(s))
}

// slash presses the key that opens the search. KeyEvent would send the
// character as well, even though the page takes the key for itself.
func (b *tab) slash() {
	b.t.Helper()
	for _, kind := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeRawKeyDown, input.DispatchKeyEventTypeKeyUp} {
		b.do(send(input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: kind, Key: "/", Code: "Slash"}))
	}
}

func writeTemp(t *testing.T, name string, write func(*bytes.Buffer) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func svgFile(t *testing.T, p *Profile, o SVGOptions) string {
	t.Helper()
	return writeTemp(t, "p.svg", func(b *bytes.Buffer) error { _, err := WriteSVG(b, p, o); return err })
}

func htmlFile(t *testing.T, p *Profile) string {
	t.Helper()
	return writeTemp(t, "p.html", func(b *bytes.Buffer) error { _, err := WriteHTML(b, p, HTMLOptions{}); return err })
}

func darkScheme() step {
	return send(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}},
	})
}
