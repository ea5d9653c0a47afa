package resources

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
)

// [modelmesh-24] [modelmesh-16] Pods have these volumes in this order.
func TestVolumes(t *testing.T) {
	for name, c := range map[string]struct {
		in   RuntimeInputs
		want string
	}{
		"puller":                   {inputs(runtimeSpec()), "models-dir storage-config tc-config etcd-config"},
		"volume of the runtime":    {inputs(runtimeSpec(withVolume("my-volume"))), "my-volume models-dir storage-config tc-config etcd-config"},
		"sockets":                  {inputs(runtimeSpec(withSockets)), "models-dir domain-socket storage-config tc-config etcd-config"},
		"adapter":                  {inputs(runtimeSpec(withAdapter)), "models-dir storage-config tc-config etcd-config"},
		"no puller and no adapter": {inputs(runtimeSpec(withoutPuller)), "models-dir tc-config etcd-config"},
		"adapter, puller disabled": {inputs(runtimeSpec(withAdapter, withoutPuller)), "models-dir storage-config tc-config etcd-config"},
		"claims":                   {inputs(runtimeSpec(), withClaims("b", "a", "b")), "models-dir storage-config a b tc-config etcd-config"},
		"all volumes": {inputs(runtimeSpec(withSockets, withVolume("own")), withTLS, withClaims("a"), func(in *RuntimeInputs) {
			in.Proxy = newOAuthProxy()
		}), "own proxy-tls models-dir domain-socket storage-config a tc-config etcd-config tls-certs"},
	} {
		if got := strings.Join(volumeNames(buildPod(t, c.in)), " "); got != c.want {
			t.Errorf("%s: volumes %s, want %s", name, got, c.want)
		}
	}
}

// The limit is 1.5 times the memory limits of the servers.
func TestModelsSizeLimit(t *testing.T) {
	for want, limits := range map[string][]string{
		"0": {""}, "1536Mi": {"1Gi"}, "3Gi": {"1Gi", "1Gi"}, "1500": {"1k"}, "1": {"1"}, "4": {"3"}, "768Mi": {"", "512Mi"},
		"9223372036854775807": {"8Ei", "8Ei"},
	} {
		spec := runtimeSpec(withoutPuller, func(s *v1alpha1.ServingRuntimeSpec) { s.Containers = nil })
		for i, limit := range limits {
			withExtraContainer(fmt.Sprintf("s%d", i))(spec)
			if limit != "" {
				spec.Containers[i].Resources.Limits = memory(limit)
			}
		}
		volumes := buildPod(t, inputs(spec)).Volumes
		i := slices.IndexFunc(volumes, func(v corev1.Volume) bool { return v.Name == modelmesh.ModelsVolume })
		if i < 0 || volumes[i].EmptyDir.SizeLimit.String() != want {
			t.Errorf("memory limits %v: volumes %+v, want one for models with size limit %s", limits, volumes, want)
		}
	}
}

// Model servers do not mount the storage credentials, for any number of claims. [M3]
func TestClaimMountsPerContainer(t *testing.T) {
	for n := range 12 {
		var claims []string
		for i := range n {
			claims = append(claims, fmt.Sprintf("claim-%02d", i))
		}
		for form, change := range forms {
			pod := buildPod(t, inputs(runtimeSpec(withAdapter, withDataSocket, withVolume("own"), withMount("own", "/own"), withExtraContainer("second")), change, withClaims(claims...)))
			want := []string{"models-dir /models"}
			for _, claim := range claims {
				want = append(want, claim+" /pvc_mounts/"+claim)
			}
			for name, otherMounts := range map[string][]string{
				"triton": {"own /own", "domain-socket /tmp/own"}, "second": {"domain-socket /tmp/own"},
				"triton-adapter": {"storage-config /storage-config", "domain-socket /tmp/own"},
			} {
				if diff := cmp.Diff(slices.Concat(want, otherMounts), mounts(getContainer(t, pod, name))); diff != "" {
					t.Errorf("%d claims, form %s, %s (-want +got):\n%s", n, form, name, diff)
				}
			}
		}
	}
}

func withDataSocket(s *v1alpha1.ServingRuntimeSpec) {
	s.GRPCDataEndpoint = new("unix:/tmp/own/data.sock")
}

// A claim whose name is not a valid volume name, or is used by another volume, is mounted at the path of its name. [M39]
func TestClaimVolumeNames(t *testing.T) {
	long := strings.Repeat("long-", 20) + "a"
	claims := []string{"plain", "with.dots", "with-dots", "own", "tc-config", "tls-certs", long, long + "b"}
	pod := buildPod(t, inputs(runtimeSpec(withVolume("own")), withClaims(claims...)))
	volumeOfClaim := map[string]string{}
	for _, v := range pod.Volumes {
		if problems := validation.IsDNS1123Label(v.Name); len(problems) > 0 {
			t.Errorf("volume %s: %q", v.Name, problems)
		}
		if c := v.PersistentVolumeClaim; c != nil {
			if !c.ReadOnly {
				t.Errorf("claim %s is not read-only", c.ClaimName)
			}
			volumeOfClaim[c.ClaimName] = v.Name
		}
	}
	if volumeOfClaim["plain"] != "plain" || volumeOfClaim["with-dots"] != "with-dots" {
		t.Errorf("volumes by claim %v, want valid names unchanged", volumeOfClaim)
	}
	for _, claim := range claims {
		if !slices.Contains(mounts(getContainer(t, pod, "puller")), volumeOfClaim[claim]+" /pvc_mounts/"+claim) {
			t.Errorf("claim %s is not mounted: %v", claim, mounts(getContainer(t, pod, "puller")))
		}
	}
}

// No two claims get the same volume name.
func TestClaimVolumeNamesAreUnique(t *testing.T) {
	name := rapid.OneOf(rapid.StringMatching(`[a-z]([a-z0-9.-]{0,8}[a-z0-9])?`), rapid.SampledFrom([]string{"models-dir", "etcd-config", "a.b", "a-b"}))
	rapid.Check(t, func(t *rapid.T) {
		p := podBuilder{RuntimeInputs: RuntimeInputs{Spec: &v1alpha1.ServingRuntimeSpec{}, Claims: rapid.SliceOfN(name, 0, 8).Draw(t, "claims")}}
		for _, volume := range rapid.SliceOfNDistinct(name, 0, 3, rapid.ID).Draw(t, "volumes") {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: volume})
		}
		volumes := map[string]bool{"models-dir": true, "etcd-config": true}
		for _, v := range p.Spec.Volumes {
			volumes[v.Name] = true
		}
		claims := map[string]bool{}
		for _, c := range p.claimVolumes() {
			if volumes[c.volume] || claims[c.claim] {
				t.Fatalf("claim volume %+v is not unique", c)
			}
			volumes[c.volume], claims[c.claim] = true, true
		}
		for _, claim := range p.Claims {
			if !claims[claim] {
				t.Fatalf("claim %s has no volume", claim)
			}
		}
	})
}

// In the current form pods start without storage credentials. [M39]
func TestStorageSecretIsOptional(t *testing.T) {
	for form, change := range forms {
		volumes := buildPod(t, inputs(runtimeSpec(), change)).Volumes
		i := slices.IndexFunc(volumes, func(v corev1.Volume) bool { return v.Name == volumeStorage })
		if i < 0 || volumes[i].Secret.SecretName != "storage-config" {
			t.Fatalf("form %s: volumes %+v, want one of Secret storage-config", form, volumes)
		}
		if optional := volumes[i].Secret.Optional; (optional != nil && *optional) != (form == "current") {
			t.Errorf("form %s: volume %+v, want it optional in the current form only", form, volumes[i].Secret)
		}
	}
}
