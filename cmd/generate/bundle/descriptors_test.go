package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
)

// baseDescriptions returns the descriptions in the base of the CSV, for the CRDs of the installation.
func baseDescriptions() []v1alpha1.CRDDescription {
	return []v1alpha1.CRDDescription{
		{Name: "bells.example.org", Version: "v1", Kind: "Bell", DisplayName: "A Bell"},
		{
			Name: "things.example.org", Version: "v1", Kind: "Thing", DisplayName: "Some Thing",
			SpecDescriptors:   []v1alpha1.SpecDescriptor{{Path: "replicas", XDescriptors: []string{"podCount"}}, {Path: "inner.enable_it", DisplayName: "On"}},
			StatusDescriptors: []v1alpha1.StatusDescriptor{{Path: "url", XDescriptors: []string{"link"}}},
		},
	}
}

func TestDescribeOwned(t *testing.T) {
	owned, err := describeOwned(baseDescriptions(), sourcesOf(t).crds)
	if err != nil {
		t.Fatal(err)
	}
	want := []v1alpha1.CRDDescription{
		{Name: "bells.example.org", Version: "v1", Kind: "Bell", DisplayName: "A Bell", Description: "Bell rings."},
		{
			Name: "things.example.org", Version: "v1", Kind: "Thing", DisplayName: "Some Thing", Description: "Thing is one of ours.",
			SpecDescriptors: []v1alpha1.SpecDescriptor{
				{Path: "backendStoreUri", DisplayName: "Backend Store Uri", Description: "where it is."},
				{Path: "inner", DisplayName: "Inner", Description: "more."},
				{Path: "inner.enable_it", DisplayName: "On", Description: "a switch."},
				{Path: "replicas", DisplayName: "Replicas", Description: "replicas is how many.", XDescriptors: []string{"podCount"}},
			},
			StatusDescriptors: []v1alpha1.StatusDescriptor{{Path: "url", DisplayName: "Url", Description: "its address.", XDescriptors: []string{"link"}}},
		},
	}
	if difference := cmp.Diff(want, owned); difference != "" {
		t.Error(difference)
	}
}

func TestDescribeOwnedRejectsBaseThatDiffersFromCRDs(t *testing.T) {
	for name, c := range map[string]struct {
		change func([]v1alpha1.CRDDescription) []v1alpha1.CRDDescription
		want   string
	}{
		"CRD without description": {func(d []v1alpha1.CRDDescription) []v1alpha1.CRDDescription { return d[:1] }, "CRD things.example.org v1 is not described"},
		"description without CRD": {func(d []v1alpha1.CRDDescription) []v1alpha1.CRDDescription {
			return append(d, v1alpha1.CRDDescription{Name: "x.y", Version: "v1"})
		}, "describes CRDs that do not exist: x.y v1"},
		"description of a deprecated version": {func(d []v1alpha1.CRDDescription) []v1alpha1.CRDDescription {
			return append(d, v1alpha1.CRDDescription{Name: "things.example.org", Version: "v1alpha1"})
		}, "things.example.org v1alpha1 is described, but deprecated or not served"},
		"description of another kind": {func(d []v1alpha1.CRDDescription) []v1alpha1.CRDDescription { d[1].Kind = "Other"; return d }, "its kind is Thing and not Other"},
		"unknown spec field": {func(d []v1alpha1.CRDDescription) []v1alpha1.CRDDescription {
			d[1].SpecDescriptors[0].Path = "inner.x"
			return d
		}, "spec: the base of the CSV describes the field inner.x"},
		"unknown status field": {func(d []v1alpha1.CRDDescription) []v1alpha1.CRDDescription {
			d[1].StatusDescriptors[0].Path = "x"
			return d
		}, "status: the base of the CSV describes the field x"},
	} {
		if _, err := describeOwned(c.change(baseDescriptions()), sourcesOf(t).crds); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got error %v, want %q", name, err, c.want)
		}
	}
	without := sourcesOf(t)
	without.crds[0].crd.Spec.Versions[0].Schema = nil
	if _, err := describeOwned(baseDescriptions(), without.crds); err == nil || !strings.Contains(err.Error(), "it has no schema") {
		t.Errorf("got error %v for a CRD without a schema, want one that names the missing schema", err)
	}
}

func TestTitle(t *testing.T) {
	for name, want := range map[string]string{
		"": "", "a": "A", "backendStoreUri": "Backend Store Uri", "enable_database_upgrade": "Enable Database Upgrade", "tls": "Tls",
		"kubeRBACProxy": "Kube RBACProxy", "URL": "URL",
	} {
		if got := title(name); got != want {
			t.Errorf("title(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestOneLine(t *testing.T) {
	if got := oneLine(" a\n  b\tc \n\n d"); got != "a b c d" {
		t.Errorf("got %q, want 'a b c d'", got)
	}
}
