package resources

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// gracePeriodSeconds is the time in which a pod can move its models to other pods.
const gracePeriodSeconds = 90

// Deployment is the built Deployment of a runtime.
type Deployment struct {
	Config *appsv1ac.DeploymentApplyConfiguration
	// Notices report problems that do not prevent the Deployment, such as ignored parts of the spec, to the author of the runtime.
	Notices []string
}

// BuildDeployment builds the Deployment of a runtime. The error of an invalid spec names the field.
func BuildDeployment(in RuntimeInputs) (Deployment, error) {
	endpoints, err := modelmesh.EndpointsOf(in.Spec)
	if err != nil {
		return Deployment{}, err
	}
	p := &podBuilder{RuntimeInputs: in, endpoints: endpoints, notices: modelmesh.IgnoredFieldWarnings(in.Spec)}
	p.claims = p.claimVolumes()
	spec, err := p.buildSpec()
	if err != nil {
		return Deployment{}, err
	}
	labels := serviceLabels(p.Settings.ServiceName)
	labels[LabelName] = p.deploymentName()
	template := corev1ac.PodTemplateSpec().WithLabels(p.podLabels(labels)).WithAnnotations(p.podAnnotations()).WithSpec(spec)
	deployment := appsv1ac.DeploymentSpec().
		WithSelector(metav1ac.LabelSelector().WithMatchLabels(map[string]string{
			LabelService: labels[LabelService], LabelName: labels[LabelName],
		})).
		WithStrategy(appsv1ac.DeploymentStrategy().WithRollingUpdate(appsv1ac.RollingUpdateDeployment().
			WithMaxSurge(intstr.FromString("75%")).WithMaxUnavailable(intstr.FromString("15%")))).
		WithTemplate(template)
	if in.Replicas != nil {
		deployment.WithReplicas(*in.Replicas)
	}
	config := appsv1ac.Deployment(p.deploymentName(), in.Namespace).WithLabels(labels).WithSpec(deployment)
	return Deployment{Config: config, Notices: p.notices}, nil
}

// TemplateHash returns a hash of the pod template.
func TemplateHash(d *appsv1ac.DeploymentApplyConfiguration) string {
	template, _ := json.Marshal(d.Spec.Template) // encoding an apply configuration cannot fail
	sum := sha256.Sum256(template)
	return hex.EncodeToString(sum[:])[:16]
}

// podLabels adds the labels of the settings and of the runtime. Labels of the runtime take precedence. Reserved labels cannot be
// overridden, because they select the pods.
func (p *podBuilder) podLabels(labels map[string]string) map[string]string {
	reserved := []string{LabelService, LabelName, LabelManagedBy}
	if p.isLegacy() {
		reserved = reserved[:2]
	}
	podLabels := maps.Clone(labels)
	for _, extra := range []struct {
		from   string
		labels map[string]string
	}{{"setting runtimePodLabels", p.Settings.RuntimePodLabels}, {"spec.labels", p.Spec.Labels}} {
		for _, key := range slices.Sorted(maps.Keys(extra.labels)) {
			if slices.Contains(reserved, key) && extra.labels[key] != labels[key] {
				p.addNotice("%s: label %s is ignored, because pods are selected by it: choose another key", extra.from, key)
				continue
			}
			podLabels[key] = extra.labels[key]
		}
	}
	return podLabels
}

func (p *podBuilder) podAnnotations() map[string]string {
	annotations := map[string]string{}
	if m := p.Settings.Metrics; m.Enabled {
		annotations["prometheus.io/path"] = "/metrics"
		annotations["prometheus.io/port"] = strconv.Itoa(int(m.Port))
		annotations["prometheus.io/scheme"] = m.Scheme
		annotations["prometheus.io/scrape"] = "true"
	}
	maps.Copy(annotations, p.Settings.RuntimePodAnnotations)
	maps.Copy(annotations, p.Spec.Annotations)
	return annotations
}

func (p *podBuilder) buildSpec() (*corev1ac.PodSpecApplyConfiguration, error) {
	containers, err := p.buildContainers()
	if err != nil {
		return nil, err
	}
	volumes := p.buildVolumes()
	if err := validateNames(containers, volumes); err != nil {
		return nil, err
	}
	tolerations := resources.MustConvertEach[corev1ac.TolerationApplyConfiguration](p.Spec.Tolerations)
	spec := corev1ac.PodSpec().
		WithTerminationGracePeriodSeconds(gracePeriodSeconds).
		WithContainers(containers...).
		WithVolumes(volumes...).
		WithImagePullSecrets(p.pullSecrets()...).
		WithNodeSelector(p.Spec.NodeSelector).
		WithTolerations(toPointers(tolerations)...)
	if account := p.Settings.ServiceAccountName; account != "" {
		spec.WithServiceAccountName(account)
	}
	if p.Proxy != nil {
		spec.WithHostAliases(p.Proxy.HostAliases()...)
	}
	if name := p.Spec.SchedulerName; name != "" {
		spec.WithSchedulerName(name)
	}
	spec.ResourceClaims = resources.MustConvertEach[corev1ac.PodResourceClaimApplyConfiguration](p.Spec.ResourceClaims)
	spec.Affinity = p.buildAffinity()
	spec.SecurityContext = p.podSecurity()
	return spec, nil
}

// pullSecrets returns the image pull secrets of the settings and of the runtime, without duplicates.
func (p *podBuilder) pullSecrets() []*corev1ac.LocalObjectReferenceApplyConfiguration {
	seen := map[string]bool{}
	var secrets []*corev1ac.LocalObjectReferenceApplyConfiguration
	for _, secret := range slices.Concat(p.Settings.ImagePullSecrets, p.Spec.ImagePullSecrets) {
		if secret.Name != "" && !seen[secret.Name] {
			seen[secret.Name] = true
			secrets = append(secrets, corev1ac.LocalObjectReference().WithName(secret.Name))
		}
	}
	return secrets
}

// validateNames returns an error for duplicate volumes, duplicate mount paths and mounts of unknown volumes. The API server would reject
// them too, but its message does not name the field of the runtime.
func validateNames(containers []*corev1ac.ContainerApplyConfiguration, volumes []*corev1ac.VolumeApplyConfiguration) error {
	volumeNames := map[string]bool{}
	for _, v := range volumes {
		if volumeNames[*v.Name] {
			return fmt.Errorf("spec.volumes: the pod would have two volumes named %q, counting those of ModelMesh and of claims: choose another name", *v.Name)
		}
		volumeNames[*v.Name] = true
	}
	for _, c := range containers {
		paths := map[string]bool{}
		for _, m := range c.VolumeMounts {
			if paths[*m.MountPath] {
				return fmt.Errorf("spec.containers[%s]: two volumes would be mounted at %q, counting those of ModelMesh: choose another path", *c.Name, *m.MountPath)
			}
			paths[*m.MountPath] = true
			if !volumeNames[*m.Name] {
				return fmt.Errorf("spec.containers[%s]: there is no volume named %q to mount: add it to spec.volumes or choose another", *c.Name, *m.Name)
			}
		}
	}
	return nil
}

func toPointers[T any](values []T) []*T {
	pointers := make([]*T, len(values))
	for i := range values {
		pointers[i] = &values[i]
	}
	return pointers
}

// buildAffinity restricts the affinity of the runtime to the architectures in the settings. Node selector terms are alternatives, so each
// nonempty term without such a requirement gets it. The legacy controller added it as one more alternative.
func (p *podBuilder) buildAffinity() *corev1ac.AffinityApplyConfiguration {
	affinity := &corev1.Affinity{}
	if p.Spec.Affinity != nil {
		affinity = p.Spec.Affinity.DeepCopy()
	}
	if architectures := p.Settings.RuntimeArchitectures; len(architectures) > 0 {
		p.requireNodes(affinity, corev1.NodeSelectorRequirement{
			Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: architectures,
		})
	}
	if *affinity == (corev1.Affinity{}) {
		return nil
	}
	return resources.MustConvert[corev1ac.AffinityApplyConfiguration](affinity)
}

func (p *podBuilder) requireNodes(affinity *corev1.Affinity, requirement corev1.NodeSelectorRequirement) {
	if affinity.NodeAffinity == nil {
		affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	required := &affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if *required == nil {
		*required = &corev1.NodeSelector{}
	}
	terms := &(*required).NodeSelectorTerms
	if len(*terms) == 0 || p.isLegacy() {
		*terms = append(*terms, corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{requirement}})
		return
	}
	for i := range *terms {
		term := &(*terms)[i]
		isEmpty := len(term.MatchExpressions) == 0 && len(term.MatchFields) == 0 // an empty term matches no node and must not get a requirement
		if !isEmpty && !slices.ContainsFunc(term.MatchExpressions, func(r corev1.NodeSelectorRequirement) bool { return r.Key == requirement.Key }) {
			term.MatchExpressions = append(term.MatchExpressions, requirement)
		}
	}
}
