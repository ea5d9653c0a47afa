// Package installed finds the manager in a cluster: its Deployment, its leader, and its settings, which it reads as the manager does from the
// arguments, variables and ConfigMaps of the Deployment.
package installed

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/odh-platform/odh-platform-operator/cmd/internal/kinds"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/fetch"
	"github.com/odh-platform/odh-platform-operator/controllers/olm"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/nested"
	"github.com/odh-platform/odh-platform-operator/pkg/status/health"
)

// DeploymentName is the name of the manager's Deployment in all shipped manifests.
const DeploymentName = "odh-platform-operator-controller-manager"

// overlayNamespaces are the namespaces of the shipped overlays. They are searched if the user may not list all namespaces.
var overlayNamespaces = []string{"opendatahub", "redhat-ods-applications"}

// Manager is the state of the manager in the cluster.
type Manager struct {
	// Deployment and Live are the Deployment, decoded and raw; nil if there is none or it cannot be read.
	Deployment *appsv1.Deployment         `json:"-"`
	Live       *unstructured.Unstructured `json:"-"`
	Found      bool                       `json:"found"`
	// MayExistUnseen means that Deployments or Leases could not be listed and none was found, although one may exist.
	MayExistUnseen bool   `json:"hidden,omitempty"`
	Namespace      string `json:"namespace,omitempty"`
	Name           string `json:"name,omitempty"`
	health.Verdict
	// Image is the image of the manager's container. Version is its tag, the beginning of its digest, or both.
	Image   string `json:"image,omitempty"`
	Version string `json:"version,omitempty"`
	// Others are the namespaces of other Deployments with the same name.
	Others []string `json:"others,omitempty"`
	// Lease is the leader election Lease, or nil. Leads is true if a replica holds it.
	Lease *Lease `json:"lease,omitempty"`
	Leads bool   `json:"leads"`
	// Settings are the settings of the manager, unless SettingsProblem is set.
	Settings        config.Config `json:"-"`
	SettingsProblem string        `json:"settingsProblem,omitempty"`
	// Unread lists the settings that could not be read, with their sources. Settings contains their defaults.
	Unread []string `json:"-"`
}

// Known reports whether the settings are known.
func (m Manager) Known() bool { return m.SettingsProblem == "" }

// IsEnabled reports whether a component is enabled; false if the settings are not known.
func (m Manager) IsEnabled(component string) bool { return m.Known() && m.Settings.Enabled(component) }

// Unreadable returns a sentence about Unread, or "".
func (m Manager) Unreadable() string {
	if len(m.Unread) == 0 {
		return ""
	}
	return "the defaults are assumed for settings of the manager that could not be read: " + strings.Join(m.Unread, ", ")
}

// Lease is the leader election Lease.
type Lease struct {
	Namespace string `json:"namespace"`
	// Holder is the identity of the leader, normally its pod name; "" if the Lease was released.
	Holder string `json:"holder"`
	// Renewed is the time of the last renewal. Others may acquire the Lease after Expires.
	Renewed time.Time `json:"renewed,omitzero"`
	Expires time.Time `json:"expires,omitzero"`
}

// IsHeld reports whether a replica leads.
func (l *Lease) IsHeld(now time.Time) bool {
	return l != nil && l.Holder != "" && now.Before(l.Expires)
}

// ReadLease decodes a Lease.
func ReadLease(u *unstructured.Unstructured) *Lease {
	spec := fetch.Decode[coordinationv1.Lease](u).Spec
	renewed := ptr.Deref(spec.RenewTime, metav1.MicroTime{}).Time
	expires := renewed.Add(time.Duration(ptr.Deref(spec.LeaseDurationSeconds, 0)) * time.Second)
	return &Lease{u.GetNamespace(), ptr.Deref(spec.HolderIdentity, ""), renewed, expires}
}

// Find finds the manager in a namespace. For "" it searches all namespaces, or ContextNamespace and overlayNamespaces if listing all
// namespaces fails.
func Find(ctx context.Context, reader fetch.Reader, namespace string, now time.Time) Manager {
	m := Manager{SettingsProblem: "the Deployment of the manager could not be read"}
	leases, leaseAllowed := findByName(ctx, reader, "Lease.coordination.k8s.io", namespace, names.OperatorName)
	for i := range leases {
		if l := ReadLease(&leases[i]); m.Lease == nil || l.Renewed.After(m.Lease.Renewed) {
			m.Lease, m.Leads = l, l.IsHeld(now)
		}
	}
	found, allowed := findByName(ctx, reader, "Deployment.apps", namespace, DeploymentName)
	m.MayExistUnseen = !allowed || !leaseAllowed
	// Prefer a Deployment with replicas.
	slices.SortStableFunc(found, func(a, b unstructured.Unstructured) int { return cmp.Compare(replicas(b), replicas(a)) })
	switch {
	case len(found) > 0:
		m.setDeployment(ctx, reader, found)
	case m.Leads:
		m.Verdict = health.Verdict{State: health.Healthy, Reason: "NoDeployment", Message: "running, but its Deployment was not found"}
	case m.MayExistUnseen:
		m.State, m.Reason = health.Unknown, "NotAllowed"
		m.Message = "the Deployments and Leases of all namespaces could not be listed; set its namespace with --manager-namespace"
	default:
		m.State, m.Reason = health.Failed, "NotFound"
		m.Message = "no Deployment " + DeploymentName + " and no leading replica were found"
	}
	return m
}

// setDeployment sets the fields that depend on the Deployment, the first of found.
func (m *Manager) setDeployment(ctx context.Context, reader fetch.Reader, found []unstructured.Unstructured) {
	m.Live, m.Deployment, m.Verdict = &found[0], fetch.Decode[appsv1.Deployment](&found[0]), health.Of(&found[0])
	m.Found, m.Namespace, m.Name = true, m.Deployment.Namespace, m.Deployment.Name
	if m.State == health.Idle {
		m.State, m.Message = health.Failed, m.Message+", so nothing is reconciled"
	}
	for _, other := range found[1:] {
		m.Others = append(m.Others, other.GetNamespace())
	}
	if c := managerContainer(m.Deployment); c != nil {
		m.Image, m.Version = c.Image, version(c.Image)
	}
	m.readSettings(ctx, reader)
}

func replicas(u unstructured.Unstructured) int64 {
	count, _ := nested.At(u.Object, "status", "replicas").(int64)
	return count
}

// version returns the tag of an image, the beginning of its digest, or both.
func version(image string) string {
	const digits = 12
	name, digest, _ := strings.Cut(image, "@sha256:")
	_, tag, _ := strings.Cut(name[strings.LastIndex(name, "/")+1:], ":")
	if digest == "" {
		return tag
	}
	return strings.TrimPrefix(tag+"@"+digest[:min(digits, len(digest))], "@")
}

// findByName returns the objects with a name, and whether they could be read.
func findByName(ctx context.Context, reader fetch.Reader, kind, namespace, name string) (found []unstructured.Unstructured, allowed bool) {
	quiet := reader.WithGaps(nil)
	found, err := quiet.List(ctx, reader.Kind(kind), namespace, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err == nil || namespace != "" {
		reader.Note(err)
		return found, err == nil
	}
	for _, candidate := range append([]string{reader.ContextNamespace}, overlayNamespaces...) {
		if u := quiet.GetByName(ctx, kind, candidate, name); u != nil {
			return []unstructured.Unstructured{*u}, true
		}
	}
	reader.Note(err)
	return nil, false
}

const containerName = "manager"

// placeholderMLflowVersion is used as the supported MLflow release, because the Deployment does not contain it.
const placeholderMLflowVersion = "0.0.0"

// managerContainer returns the manager's container, or nil.
func managerContainer(d *appsv1.Deployment) *corev1.Container {
	for i := range d.Spec.Template.Spec.Containers {
		if c := &d.Spec.Template.Spec.Containers[i]; c.Name == containerName {
			return c
		}
	}
	return nil
}

// readSettings reads the settings as the manager does, but no Secrets.
func (m *Manager) readSettings(ctx context.Context, reader fetch.Reader) {
	c, volumes := managerContainer(m.Deployment), m.Deployment.Spec.Template.Spec.Volumes
	if c == nil {
		m.SettingsProblem = fmt.Sprintf("the Deployment has no container %q", containerName)
		return
	}
	pod := &podView{ctx: ctx, reader: reader, namespace: m.Namespace, configMaps: map[string]*map[string]string{}}
	environment, requested := pod.environment(c), map[string]bool{}
	lookup := func(name string) (string, bool) {
		requested[name] = true
		value, found := environment[name]
		return value, found
	}
	args := c.Args
	if len(c.Command) > 1 {
		args = slices.Concat(c.Command[1:], args)
	}
	if len(args) > 0 && args[0] == "run" { // the default sub-command
		args = args[1:]
	}
	var err error
	m.Settings, err = config.Load(config.Program{Components: append(kinds.Names(), olm.ComponentName), MLflowVersion: placeholderMLflowVersion}, args, lookup,
		func(name string) ([]byte, error) { return pod.file(volumes, c.VolumeMounts, name) })
	m.SettingsProblem = ""
	if err != nil {
		m.SettingsProblem = err.Error()
	}
	for _, u := range pod.unread {
		if u.variable == "" || requested[u.variable] { // other variables are not settings
			m.Unread = append(m.Unread, cmp.Or(u.variable, "all variables")+" in "+u.object)
		}
	}
}

// podView reads the environment and files of a container.
type podView struct {
	ctx       context.Context
	reader    fetch.Reader
	namespace string
	// configMaps are the data of the ConfigMaps by name, nil for a ConfigMap that could not be read.
	configMaps map[string]*map[string]string
	// unread are the variables without a readable value, "" for all variables of an object, and the object that contains the value.
	unread []struct{ variable, object string }
}

func (p *podView) addUnread(variable, kind, name string) {
	p.unread = append(p.unread, struct{ variable, object string }{variable, kind + " " + p.namespace + "/" + name})
}

// configMap returns the data of a ConfigMap, and whether it could be read. A missing ConfigMap has no data.
func (p *podView) configMap(name string) (texts map[string]string, known bool) {
	stored, read := p.configMaps[name]
	if !read {
		if u, err := p.reader.Get(p.ctx, p.reader.Kind("ConfigMap"), p.namespace, name); err == nil {
			object := ptr.Deref(fetch.Decode[corev1.ConfigMap](u), corev1.ConfigMap{})
			stored = &object.Data
		}
		p.configMaps[name] = stored
	}
	return ptr.Deref(stored, nil), stored != nil
}

// configMapData returns the data of a ConfigMap, and records an unreadable ConfigMap. variable is "" for envFrom.
func (p *podView) configMapData(variable, name string) map[string]string {
	found, known := p.configMap(name)
	if !known {
		p.addUnread(variable, "ConfigMap", name)
	}
	return found
}

// environment returns the variables of a container. It neither expands references to other variables nor reads Secrets.
func (p *podView) environment(c *corev1.Container) map[string]string {
	all := map[string]string{}
	for _, from := range c.EnvFrom {
		if from.SecretRef != nil {
			p.addUnread("", "Secret", from.SecretRef.Name)
		}
		if from.ConfigMapRef != nil {
			for name, value := range p.configMapData("", from.ConfigMapRef.Name) {
				all[from.Prefix+name] = value
			}
		}
	}
	for _, v := range c.Env {
		switch source := ptr.Deref(v.ValueFrom, corev1.EnvVarSource{}); {
		case v.ValueFrom == nil:
			all[v.Name] = v.Value
		case source.ConfigMapKeyRef != nil:
			if value, found := p.configMapData(v.Name, source.ConfigMapKeyRef.Name)[source.ConfigMapKeyRef.Key]; found {
				all[v.Name] = value
			}
		case source.SecretKeyRef != nil:
			p.addUnread(v.Name, "Secret", source.SecretKeyRef.Name)
		case source.FieldRef != nil && source.FieldRef.FieldPath == "metadata.namespace":
			all[v.Name] = p.namespace
		}
	}
	return all
}

// file returns a file that a container mounts from a ConfigMap.
func (p *podView) file(volumes []corev1.Volume, mounts []corev1.VolumeMount, name string) ([]byte, error) {
	for _, mount := range mounts {
		i := slices.IndexFunc(volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
		if i < 0 || volumes[i].ConfigMap == nil || !strings.HasPrefix(name, mount.MountPath) {
			continue
		}
		key := cmp.Or(mount.SubPath, path.Base(name))
		for _, item := range volumes[i].ConfigMap.Items {
			if item.Path == key {
				key = item.Key
			}
		}
		found, _ := p.configMap(volumes[i].ConfigMap.Name)
		if content, ok := found[key]; ok {
			return []byte(content), nil
		}
	}
	return nil, fmt.Errorf("%s was not found in the readable ConfigMaps of namespace %s", name, p.namespace)
}
