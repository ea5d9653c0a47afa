package raycluster

import (
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/odh-platform/odh-platform-operator/pkg/nested"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// mergeApply merges a manifest into a stored object as server-side apply does, if the manifest omits no field that was applied before.
// Lists of named elements are merged by name if keyed is set, and otherwise replaced; versions of KubeRay's CRDs differ in this.
func mergeApply(stored, manifest any, keyed bool) any {
	switch m := manifest.(type) {
	case map[string]any:
		s, _ := stored.(map[string]any)
		out := maps.Clone(s)
		if out == nil {
			out = map[string]any{}
		}
		for name, value := range m {
			out[name] = mergeApply(out[name], value, keyed)
		}
		return out
	case []any:
		if s, _ := stored.([]any); keyed && len(m) > 0 && hasName(m[0]) {
			return mergeByName(s, m)
		}
	}
	return manifest
}

func hasName(entry any) bool {
	fields, _ := entry.(map[string]any)
	return fields["name"] != nil
}

func mergeByName(stored, manifest []any) []any {
	out := slices.Clone(stored)
	for _, entry := range manifest {
		name := entry.(map[string]any)["name"]
		if found := nested.Indexes(out, name); len(found) > 0 {
			out[found[0]] = mergeApply(out[found[0]], entry, true)
			continue
		}
		out = append(out, entry)
	}
	return out
}

// applyManifest creates a cluster from a manifest, or updates the stored one, as the SDK does.
func applyManifest(t *testing.T, s Settings, stored, manifest map[string]any, keyed bool) map[string]any {
	t.Helper()
	if stored == nil {
		got := applyDefaults(t, s, manifest, nil)
		expectAllowed(t, s, got, nil)
		return got
	}
	submitted := mergeApply(stored, manifest, keyed).(map[string]any)
	got := applyDefaults(t, s, submitted, stored)
	expectAllowed(t, s, got, stored)
	return got
}

// changedPaths returns the paths of the differences between two objects.
func changedPaths(a, b any, at string) []string {
	if cmp.Equal(a, b) {
		return nil
	}
	aFields, aok := a.(map[string]any)
	bFields, bok := b.(map[string]any)
	var out []string
	if aok && bok {
		all := maps.Clone(aFields)
		maps.Copy(all, bFields)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			out = append(out, changedPaths(aFields[name], bFields[name], at+"."+name)...)
		}
		return out
	}
	aList, aok := a.([]any)
	bList, bok := b.([]any)
	if aok && bok && len(aList) == len(bList) {
		for i := range aList {
			out = append(out, changedPaths(aList[i], bList[i], at+"."+strconv.Itoa(i))...)
		}
		return out
	}
	return []string{at}
}

// merges contains the list types of versions of KubeRay's CRD. With true, lists are merged by name.
var merges = map[string]bool{"lists by name": true, "whole lists": false}

// An apply of the SDK on an existing cluster changes only fields that the manifest changes, even with a newer version and other images of
// the operator. A pod template that the manifest changes also gets the new images, and its cluster the new version annotation.
func TestSDKApplyKeepsInjections(t *testing.T) {
	const head, group = ".spec.headGroupSpec.template.spec", ".spec.workerGroupSpecs.0.template.spec"
	for variant, s := range variants {
		later := s.with(newRelease)
		certificate := func(pod string) []string {
			if !s.MTLS {
				return nil
			}
			return []string{pod + ".initContainers.1.image"}
		}
		for name, tc := range map[string]struct {
			settings Settings
			change   func(map[string]any)
			want     []string
		}{
			"no change, same settings":   {s, func(map[string]any) {}, nil},
			"no change, later settings":  {later, func(map[string]any) {}, nil},
			"queue label":                {later, put("team-queue", "metadata", "labels", "kueue.x-k8s.io/queue-name"), []string{".metadata.labels"}},
			"more workers":               {later, put(int64(7), "spec", "workerGroupSpecs", "0", "replicas"), []string{".spec.workerGroupSpecs.0.replicas"}},
			"suspended":                  {later, put(true, "spec", "suspend"), []string{".spec.suspend"}},
			"other rayVersion":           {s, put("2.47.1", "spec", "rayVersion"), []string{".spec.rayVersion"}},
			"other image of the workers": {s, put("example.com/ray:2", in(worker0, "containers", "0", "image")...), []string{group + ".containers.0.image"}},
			"other image, newer operator": {later, put("example.com/ray:2", in(worker0, "containers", "0", "image")...), slices.Concat(
				[]string{".metadata.annotations.ray.openshift.ai/version", group + ".containers.0.image"}, certificate(group))},
			"resources of the head": {s, put(map[string]any{"limits": map[string]any{"cpu": "2"}}, in(headPod, "containers", "0", "resources")...), []string{head + ".containers.0.resources"}},
			"other value of a variable": {s, func(o map[string]any) {
				variable := find(listAt(o, in(headPod, "containers", "0", "env")...), "OWN")
				variable["value"] = "2"
			}, []string{head + ".containers.0.env.0.value"}},
		} {
			for merge, keyed := range merges {
				t.Run(variant+", "+name+", "+merge, func(t *testing.T) {
					stored := applyManifest(t, s, nil, parse(t, full), keyed)
					got := applyManifest(t, tc.settings, stored, parse(t, full, tc.change), keyed)
					if diff := cmp.Diff(tc.want, changedPaths(stored, got, "")); diff != "" {
						t.Errorf("changed paths (-want +got):\n%s", diff)
					}
					if again := applyManifest(t, tc.settings, got, parse(t, full, tc.change), keyed); !cmp.Equal(got, again) {
						t.Errorf("a second apply changed the object (-first +second):\n%s", cmp.Diff(got, again))
					}
				})
			}
		}
	}
}

// The SDK also applies objects that it has read, including the injections of this or of another cluster.
func TestApplyOfReadObjectKeepsInjections(t *testing.T) {
	for variant, s := range variants {
		for naming, stored := range storedClusters(t, s) {
			for merge, keyed := range merges {
				if got := applyManifest(t, s.with(newRelease), stored, copyOf(stored), keyed); !cmp.Equal(stored, got) {
					t.Errorf("%s, %s, %s: an apply changed the stored object (-stored +got):\n%s", variant, naming, merge, cmp.Diff(stored, got))
				}
			}
		}
		// Names and injections of another cluster are replaced.
		read := copyOf(applyDefaults(t, s, clusterWithWorkerGroups(t), nil), put("elsewhere", "metadata", "namespace"), put("other", "metadata", "name"))
		created := applyDefaults(t, s, copyOf(clusterWithWorkerGroups(t), put("elsewhere", "metadata", "namespace"), put("other", "metadata", "name")), nil)
		copied := applyDefaults(t, s, read, nil)
		expectAllowed(t, s, copied, nil)
		want, got := raycluster.View(created).Injected(), raycluster.View(copied).Injected()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: injections of a copy (-want +got):\n%s", variant, diff)
		}
		for _, pod := range [][]string{headPod, worker0, worker1} {
			for _, list := range []string{"volumes", "initContainers"} {
				for _, name := range namesAt(created, in(pod, list)...) {
					want, got := find(listAt(created, in(pod, list)...), name), find(listAt(copied, in(pod, list)...), name)
					if diff := cmp.Diff(normalize(want), normalize(got)); diff != "" {
						t.Errorf("%s: %s of %v in a copy (-want +got):\n%s", variant, name, pod, diff)
					}
				}
			}
		}
	}
}

// Adding, deleting or moving a worker group does not change the other groups.
func TestWorkerGroupsAreIndependent(t *testing.T) {
	s := onOpenShift()
	at := []string{"spec", "workerGroupSpecs"}
	for variant, s := range map[string]Settings{"operator": s, "pod": s.with(issuedByPod)} {
		original := applyDefaults(t, s, clusterWithWorkerGroups(t), nil)
		groups := listAt(original, at...)
		added := parse(t, `{groupName: added, template: {spec: {containers: [{name: w, image: "example.com/ray:1"}]}}}`)
		for name, tc := range map[string]struct {
			groups []any
			added  string // the name of the added group
		}{
			"one deleted":   {[]any{groups[0], groups[2]}, ""},
			"all deleted":   {[]any{}, ""},
			"another order": {[]any{groups[2], groups[0], groups[1]}, ""},
			"one added":     {[]any{groups[0], added, groups[1], groups[2]}, "added"},
		} {
			got := applyDefaults(t, s.with(newRelease), copyOf(original, put(tc.groups, at...)), original)
			expectAllowed(t, s.with(newRelease), got, original)
			for _, g := range listAt(got, at...) {
				fields := g.(map[string]any)
				stored := groups[max(0, slices.IndexFunc(groups, func(w any) bool { return w.(map[string]any)["groupName"] == fields["groupName"] }))]
				if fields["groupName"] != tc.added {
					if diff := cmp.Diff(stored, g); diff != "" {
						t.Errorf("%s, %s: group %v differs (-want +got):\n%s", variant, name, fields["groupName"], diff)
					}
					continue
				}
				certificate := find(listAt(fields, "template", "spec", "initContainers"), raycluster.InitCertificate)
				if certificate["image"] != "example.com/ubi:9" || len(listAt(fields, "template", "spec", "containers", "0", "env")) != len(tlsNames) {
					t.Errorf("%s, %s: the added group lacks certificates: %v", variant, name, fields)
				}
			}
			if diff := cmp.Diff(headGroup(original), headGroup(got)); diff != "" {
				t.Errorf("%s, %s: the head group differs (-want +got):\n%s", variant, name, diff)
			}
		}
	}
}

// headGroup returns the head group of a cluster.
func headGroup(object map[string]any) any { return at(object, "spec", "headGroupSpec") }
