package docs

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// policyFiles are patterns of manifests and golden files with NetworkPolicies. They omit golden files of resources that replace rules or
// have an unusual name.
var policyFiles = []string{
	"config/manager/network_policy.yaml", "config/etcd/network_policy.yaml",
	"controllers/mlflow/resources/testdata/golden/minimal-plain.yaml", "controllers/mlflow/resources/testdata/golden/minimal-openshift.yaml",
	"controllers/modelcatalog/testdata/golden/*.yaml", "controllers/raycluster/testdata/golden/*.yaml",
	"controllers/modelregistry/resources/testdata/golden/[^l]*.yaml",
}

var (
	instance  = regexp.MustCompile(`^(team-a|demo)-`)
	nameHash  = regexp.MustCompile(`-[0-9a-f]{8}$`)
	policyRow = regexp.MustCompile("(?m)^\\| [^|]+ \\| `([^`]+)` \\| ([^|]+) \\| ([^|]+) \\| [^|]+ \\|$")
)

// addPorts adds the ports of rules: their numbers or names, "all" for a rule without ports, and "none" for no rule.
func addPorts(ports map[string]bool, rules [][]networkingv1.NetworkPolicyPort) {
	if len(rules) == 0 {
		ports["none"] = true
	}
	for _, rule := range rules {
		if len(rule) == 0 {
			ports["all"] = true
		}
		for _, port := range rule {
			ports[port.Port.String()] = true
		}
	}
}

// policies returns the open ports of all NetworkPolicies, by name and direction.
func policies(t *testing.T) map[string]map[networkingv1.PolicyType]map[string]bool {
	t.Helper()
	all := map[string]map[networkingv1.PolicyType]map[string]bool{}
	for _, pattern := range policyFiles {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(paths) == 0 {
			t.Fatalf("no file matches %s: %v", pattern, err)
		}
		for _, path := range paths {
			text := read(t, strings.TrimPrefix(path, root+"/"))
			decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewBufferString(text), 4096)
			for {
				var policy networkingv1.NetworkPolicy
				if err := decoder.Decode(&policy); errors.Is(err, io.EOF) {
					break
				} else if err != nil && policy.Kind == "NetworkPolicy" {
					t.Fatal(path, err)
				}
				if policy.Kind == "NetworkPolicy" {
					addPolicy(all, &policy)
				}
			}
		}
	}
	return all
}

func addPolicy(all map[string]map[networkingv1.PolicyType]map[string]bool, policy *networkingv1.NetworkPolicy) {
	name := instance.ReplaceAllString(nameHash.ReplaceAllString(policy.Name, ""), "N-")
	if all[name] == nil {
		all[name] = map[networkingv1.PolicyType]map[string]bool{}
	}
	for _, direction := range policy.Spec.PolicyTypes {
		if all[name][direction] == nil {
			all[name][direction] = map[string]bool{}
		}
		var rules [][]networkingv1.NetworkPolicyPort
		if direction == networkingv1.PolicyTypeIngress {
			for _, rule := range policy.Spec.Ingress {
				rules = append(rules, rule.Ports)
			}
		} else {
			for _, rule := range policy.Spec.Egress {
				rules = append(rules, rule.Ports)
			}
		}
		addPorts(all[name][direction], rules)
	}
}

// samePorts reports whether a cell of the page lists the ports; "–" means that the direction is not restricted.
func samePorts(cell string, ports map[string]bool) bool {
	listed := map[string]bool{}
	for port := range strings.SplitSeq(cell, ", ") {
		listed[port] = true
	}
	return maps.Equal(listed, ports) || cell == "–" && len(ports) == 0
}

// docs/ports.md lists the ports of the NetworkPolicies.
func TestPortsMatchNetworkPolicies(t *testing.T) {
	want := policies(t)
	rows := map[string]bool{}
	for _, row := range policyRow.FindAllStringSubmatch(read(t, "docs/ports.md"), -1) {
		rows[row[1]] = true
		for i, direction := range []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress} {
			if got, ports := row[2+i], want[row[1]][direction]; !samePorts(got, ports) {
				t.Errorf("docs/ports.md: %s of %s is %q, want %v", direction, row[1], got, slices.Sorted(maps.Keys(ports)))
			}
		}
	}
	for name := range want {
		if !rows[name] {
			t.Errorf("docs/ports.md does not have NetworkPolicy %s", name)
		}
	}
	if len(rows) < 15 {
		t.Errorf("got %d NetworkPolicies, want at least 15: the test does not parse the page correctly", len(rows))
	}
}
