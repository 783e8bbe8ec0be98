//nolint:staticcheck // The newer schema of the SDK needs Grafana 12 or later; this one every Grafana imports.
package grafana

import (
	"encoding/json"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

var source = common.DataSourceRef{Type: cog.ToPtr("prometheus"), Uid: cog.ToPtr("${datasource}")}

// Dashboards returns the JSON files by name.
func Dashboards() (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, b := range boards {
		d, err := b.build().Build()
		if err != nil {
			return nil, err
		}
		data, err := json.MarshalIndent(d, "", "  ")
		if err != nil {
			return nil, err
		}
		out[b.uid+".json"] = append(data, '\n')
	}
	return out, nil
}

func (d board) build() *dashboard.DashboardBuilder {
	b := dashboard.NewDashboardBuilder(d.title).Uid(d.uid).Tags([]string{"spinguard"}).Refresh("10s").Time("now-1h", "now").Timezone("browser").
		Readonly().Tooltip(dashboard.DashboardCursorSyncCrosshair).
		WithVariable(dashboard.NewDatasourceVariableBuilder("datasource").Label("Data source").Type("prometheus"))
	for _, c := range d.vars {
		b.WithVariable(c.build())
	}
	for _, l := range d.links {
		b.Link(dashboard.NewDashboardLinkBuilder(l.title).Type(dashboard.DashboardLinkTypeLink).Url(l.url).KeepTime(!l.outside).TargetBlank(l.outside))
	}
	if d.marks != "" {
		// Grafana wants milliseconds.
		b.Annotation(dashboard.NewAnnotationQueryBuilder().Name("Incidents").Datasource(source).Enable(true).IconColor("red").
			Expr("(" + d.marks + " > 0) * 1000").UseValueForTime(true).TitleFormat("Incident").TextFormat("{{proxy}}"))
	}
	for _, r := range d.rows {
		b.WithRow(dashboard.NewRowBuilder(r.title))
		for _, p := range r.panels {
			b.WithPanel(p.build())
		}
	}
	return b
}

func (c choice) build() *dashboard.QueryVariableBuilder {
	v := dashboard.NewQueryVariableBuilder(c.name).Label(c.name).Datasource(source).
		Query(dashboard.StringOrMap{String: &c.query}).Refresh(dashboard.VariableRefreshOnTimeRangeChanged).Sort(dashboard.VariableSortAlphabeticalAsc)
	if c.all {
		v.IncludeAll(true).AllValue(".*").Multi(true)
	}
	return v
}

func (p panel) build() cog.Builder[dashboard.Panel] {
	if p.stat {
		return p.buildStat()
	}
	b := timeseries.NewPanelBuilder().Title(p.title).Description(p.help).Unit(p.unit).Datasource(source).
		Span(p.width).Height(8).Min(0).FillOpacity(10).ShowPoints(common.VisibilityModeNever)
	if p.stacked {
		b.Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal)).FillOpacity(40)
	}
	if p.link != "" {
		b.DataLinks([]cog.Builder[dashboard.DashboardLink]{dataLink(p.link)})
	}
	for _, q := range p.queries {
		b.WithTarget(target(q))
	}
	return b
}

func (p panel) buildStat() cog.Builder[dashboard.Panel] {
	b := stat.NewPanelBuilder().Title(p.title).Description(p.help).Unit(p.unit).Datasource(source).Span(p.width).Height(4).
		GraphMode(common.BigValueGraphModeNone).NoValue("none").
		ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"}))
	if p.bad {
		b.ColorMode(common.BigValueColorModeBackground).Thresholds(dashboard.NewThresholdsConfigBuilder().
			Mode(dashboard.ThresholdsModeAbsolute).
			Steps([]dashboard.Threshold{{Color: "green"}, {Color: "red", Value: cog.ToPtr(1.0)}}))
	}
	if p.link != "" {
		b.DataLinks([]cog.Builder[dashboard.DashboardLink]{dataLink(p.link)})
	}
	for _, q := range p.queries {
		b.WithTarget(target(q).Instant())
	}
	return b
}

func dataLink(url string) *dashboard.DashboardLinkBuilder {
	return dashboard.NewDashboardLinkBuilder("Report of the incident").Url(url).TargetBlank(true)
}

func target(q query) *prometheus.DataqueryBuilder {
	return prometheus.NewDataqueryBuilder().Datasource(source).Expr(q.expr).LegendFormat(q.legend)
}
