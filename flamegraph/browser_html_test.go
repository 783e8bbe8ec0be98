package flamegraph

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

func focusOn(expression string) step {
	return chromedp.Evaluate[chromedp.Void]("(" + expression + ").focus()")
}

func viewport(width, height int64) step {
	return chromedp.EmulateViewport(width, height)
}

// pageFrame finds a box of the HTML page by its name.
func pageBox(name string) string {
	return `[...document.querySelectorAll("g.frame")].find(g => g.__data__.data.name === "` + name + `")`
}

// pageShare is the width of a box as a share of the chart, in hundredths of a
// percent.
func pageShare(name string) string {
	return `Math.round(1e4 * ` + pageBox(name) + `.getBoundingClientRect().width / document.getElementById("chart").clientWidth / 10) * 10`
}

const (
	matchText = `document.getElementById("match").textContent`
	firstRow  = `document.querySelector("#top-body tr").innerText.replace(/\s+/g, " ")`
)

func TestHTMLInBrowser(t *testing.T) {
	browser := openBrowser(t)
	agent, err := FromPprof(agentProfile(), "agent.pb.gz", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Run("zoom", func(t *testing.T) { htmlZoom(t, browser) })
	t.Run("search", func(t *testing.T) { htmlSearch(t, browser) })
	t.Run("icicle and callers", func(t *testing.T) { htmlViews(t, browser) })
	t.Run("keyboard", func(t *testing.T) { htmlKeyboard(t, browser) })
	t.Run("labels", func(t *testing.T) { htmlLabels(t, browser, agent) })
	t.Run("table", func(t *testing.T) { htmlTable(t, browser) })
	t.Run("difference", func(t *testing.T) { htmlDifference(t, browser) })
	t.Run("hostile", func(t *testing.T) { htmlHostile(t, browser) })
	t.Run("dark", func(t *testing.T) { htmlDark(t, browser) })
	t.Run("colours", func(t *testing.T) { htmlColours(t, browser, agent) })
	t.Run("small screen", func(t *testing.T) { htmlSmall(t, browser) })
	t.Run("deep", func(t *testing.T) { htmlDeep(t, browser) })
	t.Run("100,000 stacks", func(t *testing.T) { htmlLarge(t, browser) })
}

func htmlZoom(t *testing.T, browser context.Context) {
	b := openFile(t, browser, htmlFile(t, load(t, "testdata/worker.folded")))
	b.want(pageShare("gcd wrr.lua:12"), "3220")
	b.click(pageBox("ngx_http_proxy_handler"))
	b.want(pageShare("ngx_http_proxy_handler"), "10000")
	b.want(pageShare("main"), "10000")
	b.want(pageShare("gcd wrr.lua:12"), "5060")
	b.want(pageBox("epoll_wait"), "undefined")
	b.click(pageBox("gcd wrr.lua:12"))
	b.want(pageShare("gcd wrr.lua:12"), "10000")
	b.click(`document.getElementById("back")`)
	b.want(pageShare("gcd wrr.lua:12"), "5060")
	b.click(`document.getElementById("reset")`)
	b.want(pageShare("gcd wrr.lua:12"), "3220")
	b.want(`document.getElementById("reset").disabled`, "true")
}

func htmlSearch(t *testing.T, browser context.Context) {
	b := openFile(t, browser, htmlFile(t, load(t, "testdata/worker.folded")))
	for term, want := range map[string]string{
		"gcd":           "matched 57.25 %, itself 57.25 %, in 2 frames",
		"^gcd.*13$":     "matched 25.10 %, itself 25.10 %, in 1 frame",
		"nginx+0x4a210": "matched 2.35 %, itself 2.35 %, in 1 frame",
		"gcd(":          "matched 0.00 %, itself 0.00 %, in 0 frames",
		"main|gcd":      "matched 98.82 %, itself 57.25 %, in 4 frames",
	} {
		b.slash()
		b.keys(term)
		b.want(matchText, want)
		b.keys(kb.Escape)
		b.want(matchText, "")
	}
	// Zoomed, the share is still of the whole.
	b.click(pageBox("gcd wrr.lua:12"))
	b.slash()
	b.keys("gcd")
	b.want(matchText, "matched 57.25 %, itself 57.25 %, in 2 frames")
	b.want(pageBox("gcd wrr.lua:12")+`.querySelector("rect").getAttribute("fill")`, "#e93d82")
}

func htmlViews(t *testing.T, browser context.Context) {
	b := openFile(t, browser, htmlFile(t, load(t, "testdata/worker.folded")))
	below := func(x, y string) string {
		return pageBox(x) + `.getBoundingClientRect().y > ` + pageBox(y) + `.getBoundingClientRect().y`
	}
	b.want(below("all", "main"), "true")
	b.click(`document.getElementById("icicle")`)
	b.want(below("all", "main"), "false")
	b.want(`document.getElementById("icicle").getAttribute("aria-pressed")`, "true")
	b.click(`document.getElementById("reversed")`)
	// Leaves are roots now: gcd lies on the root, and main far out.
	b.want(pageBox("gcd wrr.lua:12")+`.__data__.depth`, "1")
	b.want(pageBox("find wrr.lua:71")+`.__data__.parent.data.name`, "gcd wrr.lua:12")
	b.want(pageShare("tcp_sendmsg"), "1180")
}

func htmlKeyboard(t *testing.T, browser context.Context) {
	b := openFile(t, browser, htmlFile(t, load(t, "testdata/worker.folded")))
	focused := `document.activeElement.__data__?.data.name`
	b.want(`document.querySelectorAll("g.frame[tabindex]").length`, "1")
	b.do(focusOn(`document.querySelector("g.frame[tabindex]")`))
	b.want(focused, "all")
	b.keys(kb.ArrowUp)
	b.want(focused, "_start")
	b.keys(kb.ArrowLeft)
	b.want(focused, "[truncated]")
	b.want(`document.getElementById("details").textContent`, "[truncated] · unknown · 15 samples, 1.18 %")
	b.keys(kb.Enter)
	b.want(pageShare("[truncated]"), "10000")
	b.keys(kb.Escape)
	b.want(pageShare("_start"), "9880")
	b.keys("i")
	b.want(`document.getElementById("icicle").getAttribute("aria-pressed")`, "true")
	b.keys("r")
	b.want(`document.getElementById("reversed").getAttribute("aria-pressed")`, "true")
}

func htmlLabels(t *testing.T, browser context.Context, agent *Profile) {
	b := openFile(t, browser, htmlFile(t, agent))
	choose := func(key, value string) {
		t.Helper()
		b.want(`(() => { const s = document.querySelector('select[data-key="`+key+`"]');
			s.value = [...s.options].find(o => o.textContent === "`+value+`").value;
			s.dispatchEvent(new Event("change")); return s.selectedOptions[0].textContent })()`, value)
	}
	b.want(`[...document.querySelectorAll("select")].map(s => s.dataset.key).join()`, "VM state,request,upstream")
	choose("upstream", "api")
	b.want(pageBox("all")+`.__data__.data.value`, "50000000")
	b.want(`document.getElementById("filtered").textContent.slice(0, 43)`, "The filter shows 27.78 % of the profile. Su")
	b.want(pageShare("math.floor"), "6000")
	b.want(firstRow, "math.floor 60.00 % 30 ms 60.00 % 30 ms")
	choose("upstream", "media")
	choose("VM state", "compiled")
	b.want(pageBox("all")+`.__data__.data.value`, "40000000")
	choose("upstream", "api")
	b.want(`document.getElementById("empty").hidden`, "false")
	choose("upstream", "any")
	choose("VM state", "any")
	b.want(pageBox("all")+`.__data__.data.value`, "180000000")
	b.want(`document.getElementById("filtered").hidden`, "true")
}

func htmlTable(t *testing.T, browser context.Context) {
	b := openFile(t, browser, htmlFile(t, load(t, "testdata/worker.folded")))
	b.want(firstRow, "gcd wrr.lua:12 32.16 % 410 samples 32.16 % 410 samples")
	b.click(`document.querySelectorAll("#top-head button")[2]`) // by total
	b.want(firstRow, "__libc_start_main 0.00 % 0 samples 98.82 % 1,260 samples")
	b.click(`document.querySelectorAll("#top-head button")[0]`) // by name
	b.want(firstRow, "[truncated] 0.00 % 0 samples 1.18 % 15 samples")
	b.click(`[...document.querySelectorAll("#top-body button")].find(e => e.textContent === "tcp_sendmsg")`)
	b.want(matchText, "matched 11.76 %, itself 11.76 %, in 1 frame")
	b.want(`document.querySelectorAll("#top-body tr").length`, "1")
}

func htmlDifference(t *testing.T, browser context.Context) {
	b := openFile(t, browser, htmlFile(t, difference(t)))
	fill := func(name string) string { return pageBox(name) + `.querySelector("rect").getAttribute("fill")` }
	b.want(fill("find wrr.lua:71"), "rgb(232,80,70)")
	b.want(fill("epoll_wait"), "rgb(88,145,240)")
	b.want(`document.getElementById("notes").textContent.includes("Vanished: ngx_worker_process_exit, 3.72 % of the base, called by ngx_master_process_cycle.")`, "true")
	b.want(firstRow, "gcd wrr.lua:12 32.16 % 410 samples 32.16 % 410 samples 0.25 % +31.90 0.25 % +31.90")
	b.want(`[...new Set([...document.querySelectorAll("#top-body td")].filter(e => e.textContent === "0.00").map(e => e.className))].join()`, "n muted")
}

func htmlHostile(t *testing.T, browser context.Context) {
	b := openFile(t, browser, htmlFile(t, hostileProfile(t)))
	b.want(`document.querySelectorAll("script").length`, "2")
	b.want(`document.querySelectorAll("img").length`, "0")
	b.want(pageBox("<script>alert(1)</script> <script>alert(1)</script>")+`.__data__.depth`, "1")
}

// htmlDeep: the deepest stack that is kept does not exhaust the script's own.
func htmlDeep(t *testing.T, browser context.Context) {
	p := readText(t, strings.Repeat("f;", 2*maxDepth)+"leaf 1\n")
	b := openFile(t, browser, htmlFile(t, p))
	b.want(pageBox("leaf")+`.__data__.depth`, fmt.Sprint(maxDepth))
	b.slash()
	b.keys("leaf")
	b.want(matchText, "matched 100.00 %, itself 100.00 %, in 1 frame")
	b.click(pageBox("leaf"))
	b.want(`document.getElementById("back").disabled`, "false")
	b.click(`document.getElementById("reset")`)
	b.want(`document.getElementById("reset").disabled`, "true")
	openFile(t, browser, svgFile(t, p, SVGOptions{})).want(`document.querySelectorAll(".sgf.live").length`, "1")
}

func htmlDark(t *testing.T, browser context.Context) {
	file := htmlFile(t, load(t, "testdata/worker.folded"))
	color := `getComputedStyle(document.body).backgroundColor`
	openFile(t, browser, file).want(color, "rgb(255, 255, 255)")
	openFile(t, browser, file, darkScheme()).want(color, "rgb(21, 23, 26)")
}

// htmlColours: each kind of code has the colour that the legend gives it.
func htmlColours(t *testing.T, browser context.Context, agent *Profile) {
	b := openFile(t, browser, htmlFile(t, agent))
	hue := func(color string) string {
		return `(() => { const c = document.createElement("canvas").getContext("2d"); c.fillStyle = ` + color + `;
			const v = parseInt(c.fillStyle.slice(1), 16), r = v >> 16, g = v >> 8 & 255, b = v & 255, m = Math.max(r, g, b), d = m - Math.min(r, g, b);
			return d < 12 ? "grey" : Math.round((m === r ? (g - b) / d + 6 : m === g ? (b - r) / d + 2 : (r - g) / d + 4) % 6 * 6) })()`
	}
	legend := func(name string) string {
		return `getComputedStyle([...document.querySelectorAll(".legend *")].find(e => e.textContent.startsWith("` + name + ` ")).querySelector(".dot")).backgroundColor`
	}
	seen := map[string]bool{}
	for box, kind := range map[string]string{
		"_start": "C / native", "gcd wrr.lua:12": "Lua", "gcd wrr.lua:13": "Lua JIT trace", "math.floor": "Lua built-in",
	} {
		want := b.text(hue(legend(kind)))
		b.want(hue(pageBox(box)+`.querySelector("rect").getAttribute("fill")`), want)
		if seen[want] {
			t.Errorf("%s has the colour of another kind", kind)
		}
		seen[want] = true
	}
}

// htmlSmall: on a phone the page is no wider than the screen, and still works.
func htmlSmall(t *testing.T, browser context.Context) {
	for i, p := range []*Profile{load(t, "testdata/worker.folded"), difference(t)} {
		b := openFile(t, browser, htmlFile(t, p), viewport(390, 800))
		b.want(`document.documentElement.scrollWidth`, "390")
		// The table fits, and shows names whole; that of a difference scrolls.
		b.want(`(() => { const e = document.querySelector(".scroll"); return e.scrollWidth > e.clientWidth })()`, fmt.Sprint(i == 1))
		b.want(`[...document.querySelectorAll("#top-body button")].every(e => e.scrollWidth <= e.clientWidth + 1)`, "true")
		b.click(pageBox("ngx_http_proxy_handler"))
		b.want(`document.getElementById("back").disabled`, "false")
		b.want(`document.documentElement.scrollWidth`, "390")
	}
}

// syntheticFolded makes distinct stacks of depth 30 out of 2,195 functions. A
// skew of 1 calls each function equally often, a larger one some of them more.
func syntheticFolded(w io.Writer, stacks int, skew float64) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range stacks {
		_, _ = io.WriteString(w, "main")
		for depth := range 29 {
			n := 2195.0
			if depth < 8 {
				n = 6
			}
			fmt.Fprintf(w, ";function_%04d", int(n*math.Pow(rnd.Float64(), skew)))
		}
		_, _ = io.WriteString(w, " 1\n")
	}
}

func htmlLarge(t *testing.T, browser context.Context) {
	var text strings.Builder
	syntheticFolded(&text, 100_000, 4)
	b := openFile(t, browser, htmlFile(t, readText(t, text.String())))
	b.want(`document.querySelectorAll("g.frame").length > 500`, "true")
	b.want(`/Graph of callees: [0-9,]+ frames below/.test(document.getElementById("notes").textContent)`, "true")
	b.slash()
	b.keys("main")
	b.want(matchText, "matched 100.00 %, itself 0.00 %, in 1 frame")
	b.keys(kb.Escape)
	b.click(`[...document.querySelectorAll("g.frame")].filter(g => g.__data__.depth === 4)[0]`)
	b.want(`document.getElementById("back").disabled`, "false")
	b.click(`document.getElementById("reversed")`)
	b.want(`document.querySelectorAll("g.frame").length > 500`, "true")
}
