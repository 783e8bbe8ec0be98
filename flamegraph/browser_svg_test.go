package flamegraph

import (
	"bytes"
	"context"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// svgFrame finds a box of the n-th picture by the beginning of its label.
func svgFrame(n, label string) string {
	return `[...document.querySelectorAll(".sgf")[` + n + `].querySelectorAll(".frames g")].find(g => g.firstChild.textContent.startsWith("` + label + `"))`
}

func TestSVGInBrowser(t *testing.T) {
	browser := openBrowser(t)
	t.Run("zoom", func(t *testing.T) { svgZoom(t, browser) })
	t.Run("keyboard", func(t *testing.T) { svgKeyboard(t, browser) })
	t.Run("search", func(t *testing.T) { svgSearch(t, browser) })
	t.Run("inline twice", func(t *testing.T) { svgInline(t, browser) })
	t.Run("hostile", func(t *testing.T) { svgHostile(t, browser) })
	t.Run("dark", func(t *testing.T) { svgDark(t, browser) })
	t.Run("width", func(t *testing.T) { svgWidth(t, browser) })
}

func svgZoom(t *testing.T, browser context.Context) {
	b := openFile(t, browser, svgFile(t, load(t, "testdata/worker.folded"), SVGOptions{}))
	gcd, proxy, wait := svgFrame("0", "gcd wrr.lua:12"), svgFrame("0", "ngx_http_proxy_handler"), svgFrame("0", "epoll_wait")
	width := func(f string) string { return f + `.querySelector("rect").getAttribute("width")` }
	before := b.text(width(gcd))
	b.want(`document.querySelectorAll("button")[0].disabled`, "true")

	b.click(proxy)
	b.want(width(proxy), "100%")
	b.want(width(svgFrame("0", "main")), "100%")
	b.want(svgFrame("0", "main")+`.classList.contains("up")`, "true")
	b.want(`getComputedStyle(`+wait+`).display`, "none")
	b.want(`Math.round(parseFloat(`+width(gcd)+`) * 100)`, "5062") // 410 of 810
	b.click(gcd)
	b.want(width(gcd), "100%")
	b.click(`document.querySelectorAll("button")[0]`) // back
	b.want(`Math.round(parseFloat(`+width(gcd)+`) * 100)`, "5062")
	b.click(`document.querySelectorAll("button")[1]`) // reset
	b.want(width(gcd), before)
	b.want(`getComputedStyle(`+wait+`).display === "none"`, "false")
}

func svgKeyboard(t *testing.T, browser context.Context) {
	b := openFile(t, browser, svgFile(t, load(t, "testdata/worker.folded"), SVGOptions{}))
	focused := `document.activeElement.firstChild.textContent.split("\n")[0]`
	b.want(`(document.querySelector(".frames g").focus(), `+focused+`)`, "all")
	b.keys(kb.ArrowUp) // the widest child
	b.want(focused, "_start")
	b.keys(kb.ArrowLeft)
	b.want(focused, "[truncated]")
	b.keys(kb.Enter)
	b.want(svgFrame("0", "[truncated]")+`.querySelector("rect").getAttribute("width")`, "100%")
	b.want(`document.querySelector(".info").textContent`, "[truncated]  ·  unknown, 15 samples, 1.18 %")
	b.keys(kb.Escape)
	b.want(`getComputedStyle(`+svgFrame("0", "_start")+`).display === "none"`, "false")
	b.keys(kb.ArrowDown)
	b.want(focused, "all")
}

func svgSearch(t *testing.T, browser context.Context) {
	b := openFile(t, browser, svgFile(t, load(t, "testdata/worker.folded"), SVGOptions{}))
	match := `document.querySelector(".match").textContent`
	b.slash()
	b.keys("gcd")
	b.want(match, "matched 57.25 % in 2 frames") // 730 of 1275
	b.want(`document.querySelectorAll(".frames .hit").length`, "2")
	b.keys(kb.Escape)
	b.want(match, "")
	b.want(`document.querySelectorAll(".frames .hit").length`, "0")
	for term, want := range map[string]string{
		"^gcd.*13$":     "matched 25.10 % in 1 frame",
		"gcd(":          "matched 0.00 % in 0 frames",
		"nginx+0x4a210": "matched 2.35 % in 1 frame",
		"main|gcd":      "matched 98.82 % in 4 frames", // gcd lies on main, and counts once
	} {
		b.slash()
		b.keys(term)
		b.want(match, want)
		b.keys(kb.Escape)
	}
}

// svgInline puts two pictures and a second script into one HTML page.
func svgInline(t *testing.T, browser context.Context) {
	file := writeTemp(t, "two.html", func(b *bytes.Buffer) error {
		b.WriteString("<!doctype html><meta charset=utf-8><title>two</title><h1>Two</h1>")
		if _, err := WriteSVG(b, load(t, "testdata/worker.folded"), SVGOptions{Inline: true}); err != nil {
			return err
		}
		b.WriteString("<p>and</p>")
		_, err := WriteSVG(b, difference(t), SVGOptions{Inline: true, Icicle: true})
		return err
	})
	b := openFile(t, browser, file)
	b.want(`document.querySelectorAll(".sgf.live").length`, "2")
	b.click(svgFrame("1", "gcd wrr.lua:12"))
	b.want(svgFrame("1", "gcd wrr.lua:12")+`.querySelector("rect").getAttribute("width")`, "100%")
	b.want(`parseFloat(`+svgFrame("0", "gcd wrr.lua:12")+`.querySelector("rect").getAttribute("width")).toFixed(2)`, "32.16")
	b.do(focusOn(`document.querySelectorAll(".sgf")[0].querySelector("input")`))
	b.keys("gcd")
	b.want(`[...document.querySelectorAll(".match")].map(m => m.textContent).join("|")`, "matched 57.25 % in 2 frames|")
}

func svgHostile(t *testing.T, browser context.Context) {
	b := openFile(t, browser, svgFile(t, hostileProfile(t), SVGOptions{}))
	b.want(`document.querySelectorAll(".sgf.live").length`, "1")
	b.want(`document.querySelectorAll("script").length`, "1")
	b.want(`document.querySelectorAll("img").length`, "0")
	b.slash()
	b.keys("<script>alert")
	b.want(`document.querySelectorAll(".frames .hit").length`, "1")
}

func svgDark(t *testing.T, browser context.Context) {
	file := svgFile(t, load(t, "testdata/worker.folded"), SVGOptions{})
	fill := `getComputedStyle(document.querySelector(".bg")).fill`
	openFile(t, browser, file).want(fill, "rgb(255, 255, 255)")
	openFile(t, browser, file, darkScheme()).want(fill, "rgb(21, 23, 26)")
}

// svgWidth: the picture fills the window, and labels grow with their boxes.
func svgWidth(t *testing.T, browser context.Context) {
	b := openFile(t, browser, svgFile(t, load(t, "testdata/worker.folded"), SVGOptions{}), viewport(2400, 900))
	b.want(`Math.round(document.querySelector(".frames").getBoundingClientRect().width)`, "2380")
	b.want(svgFrame("0", "schedule_hrtimeout_range")+`.querySelector("text").textContent`, "schedule_hrtimeout_range")
	b.do(viewport(600, 900))
	b.want(`/^sch[a-z_]*\.\.$/.test(`+svgFrame("0", "schedule_hrtimeout_range")+`.querySelector("text").textContent)`, "true")
}
