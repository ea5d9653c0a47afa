package modelmesh

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestParseAutoscaling(t *testing.T) {
	disabled := Autoscale{Metric: "cpu", Target: 80, Min: 1, Max: 1}
	enabled := func(metric string, target, low, high int32) Autoscale {
		return Autoscale{true, metric, target, low, high}
	}
	set := func(pairs ...string) map[string]string {
		m := map[string]string{AnnotationAutoscalerClass: "hpa"}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = pairs[i+1]
		}
		return m
	}
	for name, c := range map[string]struct {
		annotations map[string]string
		want        Autoscale
		warnings    []string
	}{
		"[modelmesh-8] no class":        {nil, disabled, nil},
		"[modelmesh-8] class none":      {map[string]string{AnnotationAutoscalerClass: "none", AnnotationMinScale: "3"}, disabled, nil},
		"[modelmesh-8] hpa":             {set(), enabled("cpu", 80, 1, 1), nil},
		"[modelmesh-9] memory":          {set(AnnotationMetric, "memory"), enabled("memory", 80, 1, 1), nil},
		"[modelmesh-9] another target":  {set(AnnotationTarget, "50"), enabled("cpu", 50, 1, 1), nil},
		"[modelmesh-10] max":            {set(AnnotationMaxScale, "2"), enabled("cpu", 80, 1, 2), nil},
		"[modelmesh-10] min raises max": {set(AnnotationMinScale, "2"), enabled("cpu", 80, 2, 2), nil},
		"[modelmesh-10] both":           {set(AnnotationMinScale, "2", AnnotationMaxScale, "3"), enabled("cpu", 80, 2, 3), nil},
		"[M2] unknown class": {map[string]string{AnnotationAutoscalerClass: "keda", AnnotationMinScale: "x"}, disabled,
			[]string{`annotation serving.kserve.io/autoscalerClass is "keda": nothing scales the pods, choose hpa or none`}},
		"invalid annotations are reported": {set(AnnotationMetric, "gpu", AnnotationTarget, "101", AnnotationMinScale, "0", AnnotationMaxScale, "many"), enabled("cpu", 80, 1, 1), []string{
			`annotation serving.kserve.io/metrics is "gpu": cpu is used, set it to cpu or memory`,
			`annotation serving.kserve.io/targetUtilizationPercentage is "101": 80 is used, write a whole number from 1 to 100`,
			`annotation serving.kserve.io/min-scale is "0": 1 is used, write a whole number from 1 to 2147483647`,
			`annotation serving.kserve.io/max-scale is "many": 1 is used, write a whole number from 1 to 2147483647`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got, warnings := ParseAutoscaling(c.annotations)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(c.warnings, warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

// The result is always valid for a HorizontalPodAutoscaler, and an unknown class is reported.
func TestParsedAutoscalingIsValid(t *testing.T) {
	text := rapid.OneOf(rapid.SampledFrom([]string{"", "0", "1", "5", "100", "-1", "2147483648", "1.5", " 1"}), rapid.String())
	rapid.Check(t, func(t *rapid.T) {
		annotations := map[string]string{AnnotationAutoscalerClass: rapid.SampledFrom([]string{"hpa", "none", "", "external"}).Draw(t, "class")}
		for _, key := range []string{AnnotationMetric, AnnotationTarget, AnnotationMinScale, AnnotationMaxScale} {
			if rapid.Bool().Draw(t, "has "+key) {
				annotations[key] = text.Draw(t, key)
			}
		}
		a, warnings := ParseAutoscaling(annotations)
		if a.Min < 1 || a.Max < a.Min || a.Target < 1 || a.Target > 100 || a.Metric != "cpu" && a.Metric != "memory" {
			t.Fatalf("annotations %v: got %+v", annotations, a)
		}
		if a.Enabled != (annotations[AnnotationAutoscalerClass] == "hpa") {
			t.Fatalf("annotations %v: got %+v", annotations, a)
		}
		if annotations[AnnotationAutoscalerClass] == "external" && len(warnings) != 1 {
			t.Fatalf("annotations %v: got warnings %q, want one", annotations, warnings)
		}
	})
}
