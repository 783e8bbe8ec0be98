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
	all := dashboard.NewDashboardLinkBuilder("Fleet").Type(dashboard.DashboardLinkTypeLink).Url("/d/spinguard-fleet").KeepTime(true)
	page := dashboard.NewDashboardLinkBuilder("Page of this agent: reports and flame graphs").
		Type(dashboard.DashboardLinkTypeLink).Url("http://${instance}/incidents").TargetBlank(true)
	files := map[string]*dashboard.DashboardBuilder{
		"spinguard-fleet.json": build("Spinguard: fleet", "spinguard-fleet", fleet, false),
		"spinguard-node.json":  build("Spinguard: node", "spinguard-node", node, true).Link(all).Link(page),
	}
	out := map[string][]byte{}
	for name, b := range files {
		d, err := b.Build()
		if err != nil {
			return nil, err
		}
		data, err := json.MarshalIndent(d, "", "  ")
		if err != nil {
			return nil, err
		}
		out[name] = append(data, '\n')
	}
	return out, nil
}

func build(title, uid string, rows []row, one bool) *dashboard.DashboardBuilder {
	b := dashboard.NewDashboardBuilder(title).Uid(uid).Tags([]string{"spinguard"}).Refresh("10s").Time("now-1h", "now").Timezone("browser").
		Readonly().Tooltip(dashboard.DashboardCursorSyncCrosshair).
		WithVariable(dashboard.NewDatasourceVariableBuilder("datasource").Label("Data source").Type("prometheus")).
		WithVariable(variable("job", `label_values(spinguard_build_info, job)`))
	if one {
		b.WithVariable(variable("instance", `label_values(spinguard_build_info{job="$job"}, instance)`))
	}
	for _, r := range rows {
		b.WithRow(dashboard.NewRowBuilder(r.title))
		for _, p := range r.panels {
			b.WithPanel(p.build())
		}
	}
	return b
}

func variable(name, query string) *dashboard.QueryVariableBuilder {
	return dashboard.NewQueryVariableBuilder(name).Label(name).Datasource(source).
		Query(dashboard.StringOrMap{String: &query}).Refresh(dashboard.VariableRefreshOnTimeRangeChanged).Sort(dashboard.VariableSortAlphabeticalAsc)
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
	for _, q := range p.queries {
		b.WithTarget(target(q))
	}
	return b
}

func (p panel) buildStat() cog.Builder[dashboard.Panel] {
	b := stat.NewPanelBuilder().Title(p.title).Description(p.help).Unit(p.unit).Datasource(source).Span(p.width).Height(4).
		GraphMode(common.BigValueGraphModeNone).
		ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"}))
	if p.bad {
		b.ColorMode(common.BigValueColorModeBackground).Thresholds(dashboard.NewThresholdsConfigBuilder().
			Mode(dashboard.ThresholdsModeAbsolute).
			Steps([]dashboard.Threshold{{Color: "green"}, {Color: "red", Value: cog.ToPtr(1.0)}}))
	}
	for _, q := range p.queries {
		b.WithTarget(target(q).Instant())
	}
	return b
}

func target(q query) *prometheus.DataqueryBuilder {
	return prometheus.NewDataqueryBuilder().Datasource(source).Expr(q.expr).LegendFormat(q.legend)
}
