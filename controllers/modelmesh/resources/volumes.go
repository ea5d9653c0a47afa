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

	"github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// buildVolumes returns the volumes of the pod, those of the runtime first.
func (p *podBuilder) buildVolumes() []*corev1ac.VolumeApplyConfiguration {
	volumes := toPointers(resources.MustConvertEach[corev1ac.VolumeApplyConfiguration](p.Spec.Volumes))
	for i, v := range volumes {
		v.WithName(p.Spec.Volumes[i].Name) // the conversion omits an empty name
	}
	if p.Proxy != nil {
		volumes = append(volumes, p.Proxy.Volumes()...)
	}
	volumes = append(volumes, corev1ac.Volume().WithName(modelmesh.ModelsVolume).
		WithEmptyDir(corev1ac.EmptyDirVolumeSource().WithSizeLimit(modelsSizeLimit(p.Spec.Containers))))
	if p.endpoints.SocketDir() != "" {
		volumes = append(volumes, corev1ac.Volume().WithName(volumeSocket).WithEmptyDir(corev1ac.EmptyDirVolumeSource()))
	}
	if p.Spec.BuiltInAdapter != nil || p.needsPuller() {
		volumes = append(volumes, p.storageVolume())
	}
	for _, c := range p.claims {
		volumes = append(volumes, corev1ac.Volume().WithName(c.volume).
			WithPersistentVolumeClaim(corev1ac.PersistentVolumeClaimVolumeSource().WithClaimName(c.claim).WithReadOnly(true)))
	}
	volumes = append(volumes,
		corev1ac.Volume().WithName(volumeConstraints).WithConfigMap(corev1ac.ConfigMapVolumeSource().WithName(ConstraintsName)),
		resources.SecretVolume(volumeEtcd, p.Settings.EtcdSecretName))
	if p.TLS != nil {
		volumes = append(volumes, resources.SecretVolume(volumeTLS, p.TLS.SecretName))
	}
	return volumes
}

// storageVolume returns the volume of the storage Secret. In the current form it is optional: models without credentials load without the
// Secret, and the kubelet adds the files when the Secret is created.
func (p *podBuilder) storageVolume() *corev1ac.VolumeApplyConfiguration {
	v := resources.SecretVolume(volumeStorage, p.Settings.StorageSecretName)
	if !p.isLegacy() {
		v.Secret.WithOptional(true)
	}
	return v
}

// modelsSizeLimit returns 1.5 times the sum of the memory limits in bytes, or 0 (unlimited) without memory limits.
func modelsSizeLimit(containers []corev1.Container) resource.Quantity {
	var sum int64
	for i := range containers {
		sum = saturatingAdd(sum, containers[i].Resources.Limits.Memory().Value())
	}
	return *resource.NewQuantity(saturatingAdd(sum, sum/2), resource.BinarySI)
}

// saturatingAdd adds byte counts. Negative values count as 0, and an overflow results in the maximum.
func saturatingAdd(a, b int64) int64 {
	a, b = max(0, a), max(0, b)
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// claimVolume is a PersistentVolumeClaim and the name of its volume.
type claimVolume struct{ claim, volume string }

// claimVolumes returns the volumes of the claims. A volume has the name of its claim if that is valid for a volume and not in use.
func (p *podBuilder) claimVolumes() []claimVolume {
	usedNames := map[string]bool{modelmesh.ModelsVolume: true, volumeSocket: true, volumeStorage: true, volumeConstraints: true, volumeEtcd: true, volumeTLS: true}
	for _, v := range p.Spec.Volumes {
		usedNames[v.Name] = true
	}
	if p.Proxy != nil {
		for _, v := range p.Proxy.Volumes() {
			usedNames[*v.Name] = true
		}
	}
	var volumes []claimVolume
	for _, claim := range slices.Compact(slices.Sorted(slices.Values(p.Claims))) {
		volume := claim
		if usedNames[claim] || len(validation.IsDNS1123Label(claim)) > 0 {
			volume = hashedVolumeName(claim)
		}
		volumes = append(volumes, claimVolume{claim, volume})
	}
	return volumes
}

// hashedVolumeName returns a volume name that is unique to the claim.
func hashedVolumeName(claim string) string {
	sum := sha256.Sum256([]byte(claim))
	suffix := "-" + hex.EncodeToString(sum[:])[:8]
	return names.Truncate("claim-"+strings.ReplaceAll(claim, ".", "-"), validation.DNS1123LabelMaxLength-len(suffix)) + suffix
}

func (p *podBuilder) claimMounts() []*corev1ac.VolumeMountApplyConfiguration {
	var mounts []*corev1ac.VolumeMountApplyConfiguration
	for _, c := range p.claims {
		mounts = append(mounts, resources.ReadOnlyMount(c.volume, claimsDir+"/"+c.claim))
	}
	return mounts
}

// ClaimInputs are the inputs for the claims of a runtime.
type ClaimInputs struct {
	Form Form
	// FromSecret are the claims in the storage Secret.
	FromSecret []string
	// AllowAny allows claims that only models refer to.
	AllowAny bool
	// Models are the models of the namespace, Labels the ModelMesh labels of the runtime.
	Models []modelmesh.Model
	Labels []string
	// Exists reports whether a claim exists.
	Exists func(claim string) bool
}

// Claims returns the PersistentVolumeClaims that the pods of a runtime mount, and those that are missing, both sorted. A missing claim
// is not mounted, because the pod would not start; the legacy form mounts it if it is in the storage Secret.
func Claims(in ClaimInputs) (claims, missing []string) {
	add := func(claim string, assumeExists bool) {
		switch {
		case len(validation.IsDNS1123Subdomain(claim)) > 0: // no claim can have the name
			missing = append(missing, claim)
		case assumeExists || in.Exists(claim):
			claims = append(claims, claim)
		default:
			missing = append(missing, claim)
		}
	}
	for _, claim := range in.FromSecret {
		add(claim, in.Form == Legacy)
	}
	for _, m := range in.Models {
		if claim := m.Claim(); in.AllowAny && claim != "" && modelmesh.HasLabels(in.Labels, m.Label()) {
			add(claim, false)
		}
	}
	slices.Sort(claims)
	slices.Sort(missing)
	claims, missing = slices.Compact(claims), slices.Compact(missing)
	return claims, slices.DeleteFunc(missing, func(claim string) bool { return slices.Contains(claims, claim) })
}
