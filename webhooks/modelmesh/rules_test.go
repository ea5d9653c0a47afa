package modelmesh

import (
	"strings"
	"testing"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	pkgmodelmesh "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
)

// scaled returns the annotations of a runtime with an autoscaler, with overrides; "-" removes one.
func scaled(more ...string) map[string]string {
	annotations := map[string]string{
		pkgmodelmesh.AnnotationAutoscalerClass: "hpa", pkgmodelmesh.AnnotationMetric: "cpu", pkgmodelmesh.AnnotationTarget: "75", pkgmodelmesh.AnnotationMinScale: "2", pkgmodelmesh.AnnotationMaxScale: "3",
	}
	return with(annotations, more...)
}

func with(annotations map[string]string, more ...string) map[string]string {
	for i := 0; i < len(more); i += 2 {
		if annotations[more[i]] = more[i+1]; more[i+1] == "-" {
			delete(annotations, more[i])
		}
	}
	return annotations
}

const (
	badTarget = "The target utilization percentage should be a [1-100] integer."
	bothSet   = "Autoscaler is enabled and also replicas variable set. You can not set both."
	noMin     = "The min replicas should be a integer."
	smallMin  = "The min replicas should be more than 0"
	noMax     = "The max replicas should be a integer."
	smallMax  = "The max replicas should be same or bigger than min replicas."
)

// Section 7: every rule, with its message. [modelmesh-1] to [modelmesh-8]
func TestAutoscalingRules(t *testing.T) {
	cases := map[string]struct {
		annotations map[string]string
		replicas    *int64
		want        string
	}{
		"[modelmesh-1] all annotations":                 {annotations: scaled()},
		"nothing set":                                   {},
		"[modelmesh-2] unknown class":                   {annotations: scaled(pkgmodelmesh.AnnotationAutoscalerClass, "test"), want: "[test] is not a supported autoscaler class type.\n"},
		"class keda":                                    {annotations: map[string]string{pkgmodelmesh.AnnotationAutoscalerClass: "keda"}, want: "[keda] is not a supported autoscaler class type.\n"},
		"class empty":                                   {annotations: map[string]string{pkgmodelmesh.AnnotationAutoscalerClass: ""}, want: "[] is not a supported autoscaler class type.\n"},
		"class external":                                {annotations: scaled(pkgmodelmesh.AnnotationAutoscalerClass, "external"), want: "unknown autoscaler class [external]"},
		"[modelmesh-8] [M18] class none":                {annotations: map[string]string{pkgmodelmesh.AnnotationAutoscalerClass: "none"}},
		"[modelmesh-8] only class hpa":                  {annotations: map[string]string{pkgmodelmesh.AnnotationAutoscalerClass: "hpa"}},
		"[modelmesh-3] target below":                    {annotations: scaled(pkgmodelmesh.AnnotationTarget, "-1"), want: badTarget},
		"[modelmesh-3] target above":                    {annotations: scaled(pkgmodelmesh.AnnotationTarget, "101"), want: badTarget},
		"target zero":                                   {annotations: scaled(pkgmodelmesh.AnnotationTarget, "0"), want: badTarget},
		"target one":                                    {annotations: scaled(pkgmodelmesh.AnnotationTarget, "1")},
		"target one hundred":                            {annotations: scaled(pkgmodelmesh.AnnotationTarget, "100")},
		"target no number":                              {annotations: scaled(pkgmodelmesh.AnnotationTarget, "80%"), want: badTarget},
		"target without a class":                        {annotations: map[string]string{pkgmodelmesh.AnnotationTarget: "x"}, want: badTarget},
		"target with class none":                        {annotations: map[string]string{pkgmodelmesh.AnnotationTarget: "0", pkgmodelmesh.AnnotationAutoscalerClass: "none"}, want: badTarget},
		"[modelmesh-4] min zero":                        {annotations: scaled(pkgmodelmesh.AnnotationMinScale, "0"), want: smallMin},
		"min negative":                                  {annotations: scaled(pkgmodelmesh.AnnotationMinScale, "-3"), want: smallMin},
		"min no number":                                 {annotations: scaled(pkgmodelmesh.AnnotationMinScale, "two"), want: noMin},
		"min that no autoscaler can have":               {annotations: scaled(pkgmodelmesh.AnnotationMinScale, "2147483648"), want: noMin},
		"min without a class":                           {annotations: map[string]string{pkgmodelmesh.AnnotationMinScale: "two"}},
		"[modelmesh-5] min above max":                   {annotations: scaled(pkgmodelmesh.AnnotationMinScale, "4"), want: smallMax},
		"min above the max that holds without one":      {annotations: scaled(pkgmodelmesh.AnnotationMaxScale, "-"), want: smallMax},
		"only max-scale":                                {annotations: scaled(pkgmodelmesh.AnnotationMinScale, "-")},
		"max no number":                                 {annotations: scaled(pkgmodelmesh.AnnotationMaxScale, "1.5"), want: noMax},
		"min equal to max":                              {annotations: scaled(pkgmodelmesh.AnnotationMinScale, "3")},
		"[modelmesh-6] annotation and replicas":         {annotations: scaled(), replicas: new(int64(1)), want: bothSet},
		"replicas zero":                                 {annotations: scaled(), replicas: new(int64(0)), want: bothSet},
		"replicas as KServe defaults them":              {annotations: scaled(), replicas: new(int64(65535))},
		"replicas without a class":                      {replicas: new(int64(5))},
		"replicas with class none":                      {annotations: map[string]string{pkgmodelmesh.AnnotationAutoscalerClass: "none"}, replicas: new(int64(5))},
		"[modelmesh-7] metric memory":                   {annotations: scaled(pkgmodelmesh.AnnotationMetric, "memory")},
		"[modelmesh-7] metric misspelt":                 {annotations: scaled(pkgmodelmesh.AnnotationMetric, "conccurrency"), want: "[conccurrency] is not a supported metric.\n"},
		"metric empty":                                  {annotations: scaled(pkgmodelmesh.AnnotationMetric, ""), want: "[] is not a supported metric.\n"},
		"metric without a class":                        {annotations: map[string]string{pkgmodelmesh.AnnotationMetric: "rps"}},
		"the class before the target":                   {annotations: scaled(pkgmodelmesh.AnnotationAutoscalerClass, "test", pkgmodelmesh.AnnotationTarget, "0"), want: "[test] is not a supported autoscaler class type.\n"},
		"the metric before the target":                  {annotations: scaled(pkgmodelmesh.AnnotationMetric, "x", pkgmodelmesh.AnnotationTarget, "0"), want: "[x] is not a supported metric.\n"},
		"the target before replicas":                    {annotations: scaled(pkgmodelmesh.AnnotationTarget, "0"), replicas: new(int64(1)), want: badTarget},
		"replicas before the least number":              {annotations: scaled(pkgmodelmesh.AnnotationMinScale, "0"), replicas: new(int64(1)), want: bothSet},
		"the least number before the largest":           {annotations: scaled(pkgmodelmesh.AnnotationMinScale, "0", pkgmodelmesh.AnnotationMaxScale, "x"), want: smallMin},
		"fractional target":                             {annotations: scaled(pkgmodelmesh.AnnotationTarget, "75.0"), want: badTarget},
		"blanks":                                        {annotations: scaled(pkgmodelmesh.AnnotationTarget, " 75"), want: badTarget},
		"memory in Mi, which the target never admitted": {annotations: scaled(pkgmodelmesh.AnnotationMetric, "memory", pkgmodelmesh.AnnotationTarget, "500"), want: badTarget},
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
			t.Errorf("%s: the fault is at %q", name, got.field)
		}
	}
}

// [modelmesh-9] [modelmesh-10] Admitted annotations have the documented meaning and are not ignored later.
func TestAdmittedAnnotationsAreEffective(t *testing.T) {
	off := pkgmodelmesh.Autoscale{Metric: "cpu", Target: 80, Min: 1, Max: 1}
	on := func(change func(*pkgmodelmesh.Autoscale)) pkgmodelmesh.Autoscale {
		a := off
		a.Enabled = true
		change(&a)
		return a
	}
	hpa := map[string]string{pkgmodelmesh.AnnotationAutoscalerClass: "hpa"}
	copied := func(more ...string) map[string]string {
		return with(map[string]string{pkgmodelmesh.AnnotationAutoscalerClass: "hpa"}, more...)
	}
	cases := map[string]struct {
		annotations map[string]string
		want        pkgmodelmesh.Autoscale
		// denied combinations have a meaning too: they may be stored while the webhook is unavailable.
		refused bool
	}{
		"no annotations":  {nil, off, false},
		"class none":      {map[string]string{pkgmodelmesh.AnnotationAutoscalerClass: "none"}, off, false},
		"class hpa":       {hpa, on(func(*pkgmodelmesh.Autoscale) {}), false},
		"metric memory":   {copied(pkgmodelmesh.AnnotationMetric, "memory"), on(func(a *pkgmodelmesh.Autoscale) { a.Metric = "memory" }), false},
		"target 50":       {copied(pkgmodelmesh.AnnotationTarget, "50"), on(func(a *pkgmodelmesh.Autoscale) { a.Target = 50 }), false},
		"max 2":           {copied(pkgmodelmesh.AnnotationMaxScale, "2"), on(func(a *pkgmodelmesh.Autoscale) { a.Max = 2 }), false},
		"min 2":           {copied(pkgmodelmesh.AnnotationMinScale, "2"), on(func(a *pkgmodelmesh.Autoscale) { a.Min, a.Max = 2, 2 }), true},
		"min 2 and max 3": {copied(pkgmodelmesh.AnnotationMinScale, "2", pkgmodelmesh.AnnotationMaxScale, "3"), on(func(a *pkgmodelmesh.Autoscale) { a.Min, a.Max = 2, 3 }), false},
	}
	for name, c := range cases {
		got, notes := pkgmodelmesh.ParseAutoscaling(c.annotations)
		if got != c.want || len(notes) > 0 {
			t.Errorf("%s: got %+v with %v, want %+v", name, got, notes, c.want)
		}
		if found := validateAutoscaling(c.annotations, &v1alpha1.ServingRuntimeSpec{}); (found != nil) != c.refused {
			t.Errorf("%s: validateAutoscaling returned %+v", name, found)
		}
	}
}

// [M6] Numbers out of the range of the types of KServe.
func TestValidateEncodingRejectsNumbersOutOfRange(t *testing.T) {
	for n, bad := range map[int64]bool{-1: true, 0: false, 1: false, 65535: false, 65536: true, 70000: true} {
		found := validateEncoding("", &v1alpha1.ServingRuntimeSpec{Replicas: &n})
		if (found != nil) != bad {
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
