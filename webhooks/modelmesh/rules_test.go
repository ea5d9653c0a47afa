package modelmesh

import (
	"strings"
	"testing"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	pkgmodelmesh "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
)

// autoscaled returns the annotations of an autoscaled runtime with the given keys and values; the value "-" removes a key.
func autoscaled(keysAndValues ...string) map[string]string {
	annotations := map[string]string{
		pkgmodelmesh.AnnotationAutoscalerClass: "hpa", pkgmodelmesh.AnnotationMetric: "cpu", pkgmodelmesh.AnnotationTarget: "75", pkgmodelmesh.AnnotationMinScale: "2", pkgmodelmesh.AnnotationMaxScale: "3",
	}
	return withAnnotations(annotations, keysAndValues...)
}

func withAnnotations(annotations map[string]string, keysAndValues ...string) map[string]string {
	for i := 0; i < len(keysAndValues); i += 2 {
		if annotations[keysAndValues[i]] = keysAndValues[i+1]; keysAndValues[i+1] == "-" {
			delete(annotations, keysAndValues[i])
		}
	}
	return annotations
}

const (
	invalidTarget         = "The target utilization percentage should be a [1-100] integer."
	autoscalerAndReplicas = "Autoscaler is enabled and also replicas variable set. You can not set both."
	minNotInteger         = "The min replicas should be a integer."
	minBelowOne           = "The min replicas should be more than 0"
	maxNotInteger         = "The max replicas should be a integer."
	maxBelowMin           = "The max replicas should be same or bigger than min replicas."
)

// Each rule has its own message. [modelmesh-1] to [modelmesh-8]
func TestAutoscalingRules(t *testing.T) {
	cases := map[string]struct {
		annotations map[string]string
		replicas    *int64
		want        string
	}{
		"[modelmesh-1] all annotations":          {annotations: autoscaled()},
		"no annotations":                         {},
		"[modelmesh-2] unknown class":            {annotations: autoscaled(pkgmodelmesh.AnnotationAutoscalerClass, "test"), want: "[test] is not a supported autoscaler class type.\n"},
		"class keda":                             {annotations: map[string]string{pkgmodelmesh.AnnotationAutoscalerClass: "keda"}, want: "[keda] is not a supported autoscaler class type.\n"},
		"class empty":                            {annotations: map[string]string{pkgmodelmesh.AnnotationAutoscalerClass: ""}, want: "[] is not a supported autoscaler class type.\n"},
		"class external":                         {annotations: autoscaled(pkgmodelmesh.AnnotationAutoscalerClass, "external"), want: "unknown autoscaler class [external]"},
		"[modelmesh-8] [M18] class none":         {annotations: map[string]string{pkgmodelmesh.AnnotationAutoscalerClass: "none"}},
		"[modelmesh-8] only class hpa":           {annotations: map[string]string{pkgmodelmesh.AnnotationAutoscalerClass: "hpa"}},
		"[modelmesh-3] target below the minimum": {annotations: autoscaled(pkgmodelmesh.AnnotationTarget, "-1"), want: invalidTarget},
		"[modelmesh-3] target above the maximum": {annotations: autoscaled(pkgmodelmesh.AnnotationTarget, "101"), want: invalidTarget},
		"target zero":                            {annotations: autoscaled(pkgmodelmesh.AnnotationTarget, "0"), want: invalidTarget},
		"target one":                             {annotations: autoscaled(pkgmodelmesh.AnnotationTarget, "1")},
		"target one hundred":                     {annotations: autoscaled(pkgmodelmesh.AnnotationTarget, "100")},
		"target is not a number":                 {annotations: autoscaled(pkgmodelmesh.AnnotationTarget, "80%"), want: invalidTarget},
		"target without a class":                 {annotations: map[string]string{pkgmodelmesh.AnnotationTarget: "x"}, want: invalidTarget},
		"target with class none":                 {annotations: map[string]string{pkgmodelmesh.AnnotationTarget: "0", pkgmodelmesh.AnnotationAutoscalerClass: "none"}, want: invalidTarget},
		"[modelmesh-4] min zero":                 {annotations: autoscaled(pkgmodelmesh.AnnotationMinScale, "0"), want: minBelowOne},
		"min negative":                           {annotations: autoscaled(pkgmodelmesh.AnnotationMinScale, "-3"), want: minBelowOne},
		"min is not a number":                    {annotations: autoscaled(pkgmodelmesh.AnnotationMinScale, "two"), want: minNotInteger},
		"min exceeds 32 bits":                    {annotations: autoscaled(pkgmodelmesh.AnnotationMinScale, "2147483648"), want: minNotInteger},
		"min without a class":                    {annotations: map[string]string{pkgmodelmesh.AnnotationMinScale: "two"}},
		"[modelmesh-5] min above max":            {annotations: autoscaled(pkgmodelmesh.AnnotationMinScale, "4"), want: maxBelowMin},
		"min above the default max":              {annotations: autoscaled(pkgmodelmesh.AnnotationMaxScale, "-"), want: maxBelowMin},
		"only max-scale":                         {annotations: autoscaled(pkgmodelmesh.AnnotationMinScale, "-")},
		"max is not an integer":                  {annotations: autoscaled(pkgmodelmesh.AnnotationMaxScale, "1.5"), want: maxNotInteger},
		"min equal to max":                       {annotations: autoscaled(pkgmodelmesh.AnnotationMinScale, "3")},
		"[modelmesh-6] annotation and replicas":  {annotations: autoscaled(), replicas: new(int64(1)), want: autoscalerAndReplicas},
		"replicas zero":                          {annotations: autoscaled(), replicas: new(int64(0)), want: autoscalerAndReplicas},
		"replicas with the default of KServe":    {annotations: autoscaled(), replicas: new(int64(65535))},
		"replicas without a class":               {replicas: new(int64(5))},
		"replicas with class none":               {annotations: map[string]string{pkgmodelmesh.AnnotationAutoscalerClass: "none"}, replicas: new(int64(5))},
		"[modelmesh-7] metric memory":            {annotations: autoscaled(pkgmodelmesh.AnnotationMetric, "memory")},
		"[modelmesh-7] unknown metric":           {annotations: autoscaled(pkgmodelmesh.AnnotationMetric, "conccurrency"), want: "[conccurrency] is not a supported metric.\n"},
		"metric empty":                           {annotations: autoscaled(pkgmodelmesh.AnnotationMetric, ""), want: "[] is not a supported metric.\n"},
		"metric without a class":                 {annotations: map[string]string{pkgmodelmesh.AnnotationMetric: "rps"}},
		"invalid class and target":               {annotations: autoscaled(pkgmodelmesh.AnnotationAutoscalerClass, "test", pkgmodelmesh.AnnotationTarget, "0"), want: "[test] is not a supported autoscaler class type.\n"},
		"invalid metric and target":              {annotations: autoscaled(pkgmodelmesh.AnnotationMetric, "x", pkgmodelmesh.AnnotationTarget, "0"), want: "[x] is not a supported metric.\n"},
		"invalid target and replicas":            {annotations: autoscaled(pkgmodelmesh.AnnotationTarget, "0"), replicas: new(int64(1)), want: invalidTarget},
		"replicas and invalid min":               {annotations: autoscaled(pkgmodelmesh.AnnotationMinScale, "0"), replicas: new(int64(1)), want: autoscalerAndReplicas},
		"invalid min and max":                    {annotations: autoscaled(pkgmodelmesh.AnnotationMinScale, "0", pkgmodelmesh.AnnotationMaxScale, "x"), want: minBelowOne},
		"fractional target":                      {annotations: autoscaled(pkgmodelmesh.AnnotationTarget, "75.0"), want: invalidTarget},
		"target with a blank":                    {annotations: autoscaled(pkgmodelmesh.AnnotationTarget, " 75"), want: invalidTarget},
		"target of memory in Mi":                 {annotations: autoscaled(pkgmodelmesh.AnnotationMetric, "memory", pkgmodelmesh.AnnotationTarget, "500"), want: invalidTarget},
	}
	for name, c := range cases {
		got := validateAutoscaling(c.annotations, &v1alpha1.ServingRuntimeSpec{Replicas: c.replicas})
		if got == nil && c.want == "" {
			continue
		}
		if got == nil || got.message != c.want {
			t.Errorf("%s: got %v, want %q", name, got, c.want)
			continue
		}
		if got.field != "spec.replicas" && !strings.HasPrefix(got.field, "metadata.annotations[serving.kserve.io/") {
			t.Errorf("%s: unexpected field %q", name, got.field)
		}
	}
}

// [modelmesh-9] [modelmesh-10] The allowed annotations have the documented effect.
func TestAllowedAnnotationsAreEffective(t *testing.T) {
	disabled := pkgmodelmesh.Autoscale{Metric: "cpu", Target: 80, Min: 1, Max: 1}
	enabled := func(change func(*pkgmodelmesh.Autoscale)) pkgmodelmesh.Autoscale {
		a := disabled
		a.Enabled = true
		change(&a)
		return a
	}
	hpa := map[string]string{pkgmodelmesh.AnnotationAutoscalerClass: "hpa"}
	hpaWith := func(keysAndValues ...string) map[string]string {
		return withAnnotations(map[string]string{pkgmodelmesh.AnnotationAutoscalerClass: "hpa"}, keysAndValues...)
	}
	cases := map[string]struct {
		annotations map[string]string
		want        pkgmodelmesh.Autoscale
		// denied reports whether the webhook denies the annotations. They have an effect if they are stored while it is unavailable.
		denied bool
	}{
		"no annotations":  {nil, disabled, false},
		"class none":      {map[string]string{pkgmodelmesh.AnnotationAutoscalerClass: "none"}, disabled, false},
		"class hpa":       {hpa, enabled(func(*pkgmodelmesh.Autoscale) {}), false},
		"metric memory":   {hpaWith(pkgmodelmesh.AnnotationMetric, "memory"), enabled(func(a *pkgmodelmesh.Autoscale) { a.Metric = "memory" }), false},
		"target 50":       {hpaWith(pkgmodelmesh.AnnotationTarget, "50"), enabled(func(a *pkgmodelmesh.Autoscale) { a.Target = 50 }), false},
		"max 2":           {hpaWith(pkgmodelmesh.AnnotationMaxScale, "2"), enabled(func(a *pkgmodelmesh.Autoscale) { a.Max = 2 }), false},
		"min 2":           {hpaWith(pkgmodelmesh.AnnotationMinScale, "2"), enabled(func(a *pkgmodelmesh.Autoscale) { a.Min, a.Max = 2, 2 }), true},
		"min 2 and max 3": {hpaWith(pkgmodelmesh.AnnotationMinScale, "2", pkgmodelmesh.AnnotationMaxScale, "3"), enabled(func(a *pkgmodelmesh.Autoscale) { a.Min, a.Max = 2, 3 }), false},
	}
	for name, c := range cases {
		got, notes := pkgmodelmesh.ParseAutoscaling(c.annotations)
		if got != c.want || len(notes) > 0 {
			t.Errorf("%s: got %+v with %v, want %+v", name, got, notes, c.want)
		}
		if found := validateAutoscaling(c.annotations, &v1alpha1.ServingRuntimeSpec{}); (found != nil) != c.denied {
			t.Errorf("%s: validateAutoscaling returned %+v", name, found)
		}
	}
}

// [M6] Replica counts that KServe cannot decode, and malformed specs, are rejected.
func TestValidateEncodingRejectsNumbersOutOfRange(t *testing.T) {
	for n, invalid := range map[int64]bool{-1: true, 0: false, 1: false, 65535: false, 65536: true, 70000: true} {
		found := validateEncoding("", &v1alpha1.ServingRuntimeSpec{Replicas: &n})
		if (found != nil) != invalid {
			t.Errorf("validateEncoding of %d replicas returned %+v", n, found)
		}
	}
	if found := validateEncoding("", &v1alpha1.ServingRuntimeSpec{}); found != nil {
		t.Errorf("validateEncoding without replicas returned %+v, want nil", found)
	}
	found := validateEncoding("spec.containers cannot be read: no", &v1alpha1.ServingRuntimeSpec{})
	if found == nil || found.message != "spec.containers cannot be read: no: correct the value" {
		t.Errorf("validateEncoding of a malformed spec returned %+v, want its error", found)
	}
}
