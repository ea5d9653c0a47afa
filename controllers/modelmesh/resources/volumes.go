package resources

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	mm "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// volumes lists the volumes in their order, the runtime's own first.
func (p *podBuilder) buildVolumes() []*corev1ac.VolumeApplyConfiguration {
	all := toPointers(resources.MustApplyEach[corev1ac.VolumeApplyConfiguration](p.Spec.Volumes))
	for i, v := range all {
		v.WithName(p.Spec.Volumes[i].Name) // an empty name is left out by the translation
	}
	if p.Proxy != nil {
		all = append(all, p.Proxy.Volumes()...)
	}
	all = append(all, corev1ac.Volume().WithName(mm.ModelsVolume).
		WithEmptyDir(corev1ac.EmptyDirVolumeSource().WithSizeLimit(modelsSizeLimit(p.Spec.Containers))))
	if p.endpoints.SocketDir() != "" {
		all = append(all, corev1ac.Volume().WithName(volumeSocket).WithEmptyDir(corev1ac.EmptyDirVolumeSource()))
	}
	if p.Spec.BuiltInAdapter != nil || p.needsPuller() {
		all = append(all, p.storageVolume())
	}
	for _, c := range p.claims {
		all = append(all, corev1ac.Volume().WithName(c.volume).
			WithPersistentVolumeClaim(corev1ac.PersistentVolumeClaimVolumeSource().WithClaimName(c.claim).WithReadOnly(true)))
	}
	all = append(all,
		corev1ac.Volume().WithName(volumeConstraints).WithConfigMap(corev1ac.ConfigMapVolumeSource().WithName(ConstraintsName)),
		secretVolume(volumeEtcd, p.Settings.EtcdSecretName))
	if p.TLS != nil {
		all = append(all, secretVolume(volumeTLS, p.TLS.SecretName))
	}
	return all
}

func secretVolume(name, secret string) *corev1ac.VolumeApplyConfiguration {
	return corev1ac.Volume().WithName(name).WithSecret(corev1ac.SecretVolumeSource().WithSecretName(secret))
}

// storageVolume may be missing: models that need no credentials load without it, and the kubelet fills it when it comes.
func (p *podBuilder) storageVolume() *corev1ac.VolumeApplyConfiguration {
	v := secretVolume(volumeStorage, p.Settings.StorageSecretName)
	if !p.isLegacy() {
		v.Secret.WithOptional(true)
	}
	return v
}

// modelsSize is one and a half times the memory that the servers may use, in whole bytes; 0, which is no limit, when none of them
// has a limit.
func modelsSizeLimit(containers []corev1.Container) resource.Quantity {
	var sum int64
	for i := range containers {
		sum = saturatingAdd(sum, containers[i].Resources.Limits.Memory().Value())
	}
	return *resource.NewQuantity(saturatingAdd(sum, sum/2), resource.BinarySI)
}

// saturated adds numbers of bytes; negative ones count for nothing, and the sum ends at the largest number that there is.
func saturatingAdd(a, b int64) int64 {
	a, b = max(0, a), max(0, b)
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// claimVolume is a claim with the name of its volume.
type claimVolume struct{ claim, volume string }

// claimVolumes names the volumes of claims like the claims, unless that is no name for a volume or is taken.
func (p *podBuilder) claimVolumes() []claimVolume {
	taken := map[string]bool{mm.ModelsVolume: true, volumeSocket: true, volumeStorage: true, volumeConstraints: true, volumeEtcd: true, volumeTLS: true}
	for _, v := range p.Spec.Volumes {
		taken[v.Name] = true
	}
	if p.Proxy != nil {
		for _, v := range p.Proxy.Volumes() {
			taken[*v.Name] = true
		}
	}
	var all []claimVolume
	for _, claim := range slices.Compact(slices.Sorted(slices.Values(p.Claims))) {
		volume := claim
		if taken[claim] || len(validation.IsDNS1123Label(claim)) > 0 {
			volume = hashedVolumeName(claim)
		}
		all = append(all, claimVolume{claim, volume})
	}
	return all
}

// derivedVolume is a name for the volume of a claim that no other claim has.
func hashedVolumeName(claim string) string {
	sum := sha256.Sum256([]byte(claim))
	tail := "-" + hex.EncodeToString(sum[:])[:8]
	return names.Truncate("claim-"+strings.ReplaceAll(claim, ".", "-"), validation.DNS1123LabelMaxLength-len(tail)) + tail
}

func (p *podBuilder) claimMounts() []*corev1ac.VolumeMountApplyConfiguration {
	var all []*corev1ac.VolumeMountApplyConfiguration
	for _, c := range p.claims {
		all = append(all, readOnlyMount(c.volume, claimsDir+"/"+c.claim))
	}
	return all
}

// ClaimInputs is what the claims of a runtime are found by.
type ClaimInputs struct {
	Form Form
	// Listed are the claims that the storage Secret names.
	FromSecret []string
	// AllowAny also mounts those that models name.
	AllowAny bool
	// Models are those of the namespace, and Labels what the runtime offers.
	Models []mm.Model
	Labels []string
	// Exists tells whether there is a claim of that name.
	Exists func(claim string) bool
}

// Claims are the PersistentVolumeClaims that pods of a runtime mount, and those that they would mount if they existed; both
// sorted. Pods never start with a claim that does not exist. The original mounted it nevertheless if the storage Secret named it.
func Claims(in ClaimInputs) (claims, missing []string) {
	add := func(claim string, unseen bool) {
		switch {
		case len(validation.IsDNS1123Subdomain(claim)) > 0: // no claim can have that name
			missing = append(missing, claim)
		case unseen || in.Exists(claim):
			claims = append(claims, claim)
		default:
			missing = append(missing, claim)
		}
	}
	for _, claim := range in.FromSecret {
		add(claim, in.Form == Legacy)
	}
	for _, m := range in.Models {
		if claim := m.Claim(); in.AllowAny && claim != "" && mm.HasLabels(in.Labels, m.Label()) {
			add(claim, false)
		}
	}
	slices.Sort(claims)
	slices.Sort(missing)
	claims, missing = slices.Compact(claims), slices.Compact(missing)
	return claims, slices.DeleteFunc(missing, func(claim string) bool { return slices.Contains(claims, claim) })
}
