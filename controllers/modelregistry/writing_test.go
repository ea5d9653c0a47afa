package modelregistry

import (
	"errors"
	"fmt"
	"testing"

	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"

	appsv1 "k8s.io/api/apps/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"

	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
)

func TestSplit(t *testing.T) {
	controlled := apply.Object{Config: corev1ac.Service("a", "ns")}
	published := apply.Object{Config: corev1ac.Service("b", "ns"), Ownership: apply.Unowned}
	own, others := split(apply.Desired{controlled, published, controlled})
	if len(own) != 2 || len(others) != 1 || others[0].Ownership != apply.Unowned {
		t.Errorf("%d own, %d published", len(own), len(others))
	}
}

func TestFailures(t *testing.T) {
	a, b := &apply.Error{Kind: "A", Err: errors.New("a")}, &apply.Error{Kind: "B", Err: errors.New("b")}
	for name, test := range map[string]struct {
		err  error
		want int
	}{
		"none":    {nil, 0},
		"one":     {a, 1},
		"wrapped": {fmt.Errorf("x: %w", a), 1},
		"joined":  {errors.Join(a, fmt.Errorf("y: %w", errors.Join(b, errors.New("other")))), 2},
		"other":   {errors.New("other"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := failures(test.err); len(got) != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// D30: what the original made is taken over where it is this registry's, as far as it says so.
func TestAdoptable(t *testing.T) {
	m := stored("demo")
	mine := map[string]string{resources.LabelCreatedBy: resources.CreatedBy, resources.LabelApp: "demo"}
	with := func(key, value string) map[string]string {
		all := map[string]string{key: value}
		for k, v := range mine {
			if k != key {
				all[k] = v
			}
		}
		return all
	}
	for name, test := range map[string]struct {
		labels map[string]string
		want   bool
	}{
		"of the original":      {mine, true},
		"with its namespace":   {with(resources.LabelNamespace, "ns"), true},
		"of another namespace": {with(resources.LabelNamespace, "elsewhere"), false},
		"of another registry":  {with(resources.LabelApp, "other"), false},
		"of somebody else":     {with(resources.LabelCreatedBy, "me"), false},
		"without labels":       {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			live := &unstructured.Unstructured{}
			live.SetLabels(test.labels)
			if got := adoptable(m)(live); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// D9: only another selector is a reason to make a Deployment anew.
func TestOtherSelector(t *testing.T) {
	want := appsv1ac.Deployment("d", "ns").WithSpec(appsv1ac.DeploymentSpec().WithSelector(metav1ac.LabelSelector().WithMatchLabels(map[string]string{"a": "1"})))
	for name, test := range map[string]struct {
		live *metav1.LabelSelector
		want bool
	}{
		"the same":         {&metav1.LabelSelector{MatchLabels: map[string]string{"a": "1"}}, false},
		"another value":    {&metav1.LabelSelector{MatchLabels: map[string]string{"a": "2"}}, true},
		"one label more":   {&metav1.LabelSelector{MatchLabels: map[string]string{"a": "1", "b": "1"}}, true},
		"one that is none": {nil, false},
		"expressions": {&metav1.LabelSelector{MatchLabels: map[string]string{"a": "1"},
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "b", Operator: metav1.LabelSelectorOpExists}}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := otherSelector(&appsv1.Deployment{Spec: appsv1.DeploymentSpec{Selector: test.live}}, want); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
	if otherSelector(&appsv1.Deployment{}, appsv1ac.Deployment("d", "ns")) {
		t.Error("what is not wanted cannot differ")
	}
	if (apply.Desired{{Config: want}}).Deployment("d") != want || (apply.Desired{{Config: want}}).Deployment("e") != nil {
		t.Error("a Deployment is found by its name")
	}
}
