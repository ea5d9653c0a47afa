// Package installed finds the manager in a cluster: its Deployment, the replica that leads, and the settings that it runs with,
// which it reads as the manager does, from the Deployment's arguments, variables and ConfigMaps.
package installed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
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
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/cli"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/fetch"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/status/health"
)

// DeploymentName is the name of the manager's Deployment in every installation.
const DeploymentName = "odh-platform-operator-controller-manager"

// container is the manager's, in the pods of its Deployment.
const container = "manager"

// overlays are the namespaces of the shipped overlays, which are tried if the whole cluster cannot be searched.
var overlays = []string{"opendatahub", "redhat-ods-applications"}

// Manager is what was found.
type Manager struct {
	// Deployment of the manager, and Live as it was read; nil when there is none, or none that may be seen.
	Deployment *appsv1.Deployment
	Live       *unstructured.Unstructured
	// Hidden tells that the caller may not look for Deployment or Lease, so that there may be more than was found.
	Hidden bool
	// Others are the namespaces of further Deployments of the name.
	Others []string
	// Health of the Deployment.
	Health health.Verdict
	// Image of the manager's container; Version is its tag, or the beginning of its digest.
	Image, Version string
	// Lease says who leads; nil when there is none, or none that may be seen.
	Lease *Lease
	// Settings are those that the manager runs with.
	Settings Settings
}

// Lease is the one with which replicas compete.
type Lease struct {
	Namespace string `json:"namespace"`
	// Holder is the name of the leading pod, with a suffix; empty when no replica leads.
	Holder string `json:"holder"`
	// Renewed is when the holder renewed it last, and Expires when others may take it.
	Renewed time.Time `json:"renewed,omitzero"`
	Expires time.Time `json:"expires,omitzero"`
}

// Held tells whether a replica leads.
func (l *Lease) Held(now time.Time) bool { return l != nil && l.Holder != "" && now.Before(l.Expires) }

// Find looks for the manager: in one namespace, or, when that is empty, in all, or at least in the likely ones.
func Find(ctx context.Context, reader fetch.Reader, namespace string) Manager {
	var m Manager
	found, allowed := named(ctx, reader, "Deployment.apps", namespace, DeploymentName)
	// If there are several, the one with replicas counts.
	slices.SortStableFunc(found, func(a, b unstructured.Unstructured) int { return cmp.Compare(replicas(b), replicas(a)) })
	if len(found) > 0 {
		m.Live, m.Deployment, m.Health = &found[0], fetch.As[appsv1.Deployment](&found[0]), health.Of(&found[0])
		for _, other := range found[1:] {
			m.Others = append(m.Others, other.GetNamespace())
		}
		if c := managerContainer(m.Deployment); c != nil {
			m.Image, m.Version = c.Image, version(c.Image)
		}
		m.Settings = readSettings(ctx, reader, m.Deployment)
	}
	leases, leaseAllowed := named(ctx, reader, "Lease.coordination.k8s.io", namespace, names.OperatorName)
	m.Hidden = !allowed || !leaseAllowed
	for i := range leases {
		if l := ReadLease(&leases[i]); m.Lease == nil || l.Renewed.After(m.Lease.Renewed) {
			m.Lease = l
		}
	}
	return m
}

// Require is Find for commands that need the manager.
func Require(ctx context.Context, o *cli.Options, reader fetch.Reader) (Manager, error) {
	const advice = "name the namespace of the manager with --manager-namespace"
	var gaps fetch.Gaps // apart from the notes of the reader: the settings report by themselves what could not be read
	m := Find(ctx, reader.Noting(&gaps), o.ManagerNamespace)
	switch {
	case m.Live == nil && m.Hidden:
		return m, fmt.Errorf("%w: %s; %s", cli.ErrUnknown, strings.Join(gaps.Lines(), "; "), advice)
	case m.Live == nil:
		return m, fmt.Errorf("there is no Deployment %s; %s", DeploymentName, advice)
	}
	return m, nil
}

func replicas(u unstructured.Unstructured) int64 {
	count, _, _ := unstructured.NestedInt64(u.Object, "status", "replicas") // none where it is of another type
	return count
}

// managerContainer is the container with the program; nil when there is none.
func managerContainer(d *appsv1.Deployment) *corev1.Container {
	containers := d.Spec.Template.Spec.Containers
	i := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == container })
	if i < 0 {
		return nil
	}
	return &containers[i]
}

// version is the tag of an image, or the beginning of its digest, or both.
func version(image string) string {
	const digits = 12
	name, digest, pinned := strings.Cut(image, "@")
	_, tag, _ := strings.Cut(name[strings.LastIndex(name, "/")+1:], ":")
	if !pinned {
		return tag
	}
	if _, hex, is := strings.Cut(digest, ":"); is && len(hex) > digits {
		digest = hex[:digits]
	}
	return strings.TrimPrefix(tag+"@"+digest, "@")
}

// named returns the objects of a name, and whether the caller may look for them.
func named(ctx context.Context, reader fetch.Reader, kind, namespace, name string) (found []unstructured.Unstructured, allowed bool) {
	quiet := reader.Noting(nil)
	found, err := quiet.List(ctx, reader.Kind(kind), namespace, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil && namespace == "" {
		for _, likely := range append([]string{reader.Own}, overlays...) {
			if u, _ := quiet.Get(ctx, reader.Kind(kind), likely, name); u != nil {
				return []unstructured.Unstructured{*u}, true
			}
		}
	}
	reader.Note(err)
	return found, err == nil
}

// ReadLease decodes a Lease.
func ReadLease(u *unstructured.Unstructured) *Lease {
	spec := fetch.As[coordinationv1.Lease](u).Spec
	renewed := ptr.Deref(spec.RenewTime, metav1.MicroTime{}).Time
	return &Lease{
		Namespace: u.GetNamespace(), Holder: ptr.Deref(spec.HolderIdentity, ""), Renewed: renewed,
		Expires: renewed.Add(time.Duration(ptr.Deref(spec.LeaseDurationSeconds, 0)) * time.Second),
	}
}

// anyVersion stands for the release of MLflow that the manager's build supports, which the Deployment does not show.
const anyVersion = "0.0.0"

// Settings are what a manager runs with, as far as its Deployment shows.
type Settings struct {
	// Known tells whether they could be read; Problem says why not, or what the manager would say of them.
	Known   bool
	Problem string
	Config  config.Config
	// Unread are settings whose source could not be read, so that Config has their defaults.
	Unread []Unread
}

// Unread is a setting that could not be read.
type Unread struct {
	// Variable of the manager, empty for all that the object may set.
	Variable string
	// Kind, Namespace and Name are those of the object that holds it.
	Kind, Namespace, Name string
}

// String names the setting and the object that holds it.
func (u Unread) String() string {
	return cmp.Or(u.Variable, "whatever variables there are") + " in " + u.Kind + " " + u.Namespace + "/" + u.Name
}

// Unreadable is a sentence about the settings that could not be read; empty when all could.
func (s Settings) Unreadable() string {
	if len(s.Unread) == 0 {
		return ""
	}
	var names []string
	for _, u := range s.Unread {
		names = append(names, u.String())
	}
	return "settings of the manager that could not be read count as their defaults: " + strings.Join(names, ", ")
}

// readSettings reads the settings as the manager does. Secrets are not read.
func readSettings(ctx context.Context, reader fetch.Reader, d *appsv1.Deployment) Settings {
	c := managerContainer(d)
	if c == nil {
		return Settings{Problem: fmt.Sprintf("the Deployment has no container %q", container)}
	}
	w := &podView{ctx: ctx, reader: reader, namespace: d.Namespace, pod: &d.Spec.Template.Spec, maps: map[string]configMap{}}
	environment := w.environment(c)
	asked := map[string]bool{}
	lookup := func(name string) (string, bool) {
		asked[name] = true
		value, found := environment[name]
		return value, found
	}
	loaded, err := config.Load(config.Program{Components: kinds.Names(), MLflowVersion: anyVersion}, arguments(c), lookup, w.file(c))
	// Variables that the manager does not read do not matter.
	unread := slices.DeleteFunc(w.unread, func(u Unread) bool { return u.Variable != "" && !asked[u.Variable] })
	if err != nil {
		return Settings{Problem: err.Error(), Unread: unread}
	}
	return Settings{Known: true, Config: loaded, Unread: unread}
}

// arguments of the manager, without the word for its default sub-command.
func arguments(c *corev1.Container) []string {
	args := c.Args
	if len(c.Command) > 1 {
		args = slices.Concat(c.Command[1:], args)
	}
	if len(args) > 0 && args[0] == "run" {
		return args[1:]
	}
	return args
}

// podView is what a container of a pod sees.
type podView struct {
	ctx       context.Context
	reader    fetch.Reader
	namespace string
	pod       *corev1.PodSpec
	// maps are the ConfigMaps that were read, by name.
	maps map[string]configMap
	// unread are the variables that could not be read.
	unread []Unread
}

// configMap has the texts of a ConfigMap, if they are known: one that does not exist is known to have none.
type configMap struct {
	data  map[string]string
	known bool
}

func (p *podView) configMap(name string) configMap {
	if stored, read := p.maps[name]; read {
		return stored
	}
	u, err := p.reader.Get(p.ctx, p.reader.Kind("ConfigMap"), p.namespace, name)
	found := configMap{known: err == nil}
	if u != nil {
		found.data = fetch.As[corev1.ConfigMap](u).Data
	}
	p.maps[name] = found
	return found
}

// environment of a container: of variables that refer to others only the text is known, and of Secrets nothing.
func (p *podView) environment(c *corev1.Container) map[string]string {
	all := map[string]string{}
	for _, from := range c.EnvFrom {
		if from.SecretRef != nil {
			p.lacks("", "Secret", from.SecretRef.Name)
		}
		if from.ConfigMapRef != nil {
			for name, value := range p.texts("", from.ConfigMapRef.Name) {
				all[from.Prefix+name] = value
			}
		}
	}
	for _, v := range c.Env {
		switch source := ptr.Deref(v.ValueFrom, corev1.EnvVarSource{}); {
		case v.ValueFrom == nil:
			all[v.Name] = v.Value
		case source.ConfigMapKeyRef != nil:
			if value, set := p.texts(v.Name, source.ConfigMapKeyRef.Name)[source.ConfigMapKeyRef.Key]; set {
				all[v.Name] = value
			}
		case source.SecretKeyRef != nil:
			p.lacks(v.Name, "Secret", source.SecretKeyRef.Name)
		case source.FieldRef != nil && source.FieldRef.FieldPath == "metadata.namespace":
			all[v.Name] = p.namespace
		}
	}
	return all
}

// texts of a ConfigMap from which a variable comes, or several, for which the name is "".
func (p *podView) texts(variable, name string) map[string]string {
	found := p.configMap(name)
	if !found.known {
		p.lacks(variable, "ConfigMap", name)
	}
	return found.data
}

func (p *podView) lacks(variable, kind, name string) {
	p.unread = append(p.unread, Unread{variable, kind, p.namespace, name})
}

// file reads the files that ConfigMaps put into a container.
func (p *podView) file(c *corev1.Container) func(string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		for _, mount := range c.VolumeMounts {
			below, inside := strings.CutPrefix(path.Clean(name), path.Clean(mount.MountPath))
			i := slices.IndexFunc(p.pod.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
			if !inside || i < 0 {
				continue
			}
			content, err := p.mounted(p.pod.Volumes[i], strings.TrimPrefix(path.Join(mount.SubPath, below), "/"))
			if !errors.Is(err, fs.ErrNotExist) {
				return content, err
			}
		}
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
}

// mounted returns a file of a volume that a ConfigMap fills.
func (p *podView) mounted(v corev1.Volume, file string) ([]byte, error) {
	switch {
	case v.Secret != nil:
		return nil, fmt.Errorf("%s is in Secret %s/%s, and Secrets are not read", file, p.namespace, v.Secret.SecretName)
	case v.ConfigMap == nil:
		return nil, fs.ErrNotExist
	}
	for _, item := range v.ConfigMap.Items {
		if item.Path == file {
			file = item.Key
		}
	}
	found := p.configMap(v.ConfigMap.Name)
	if !found.known {
		return nil, fmt.Errorf("%s is in ConfigMap %s/%s, which could not be read", file, p.namespace, v.ConfigMap.Name)
	}
	content, has := found.data[file]
	if !has {
		return nil, fs.ErrNotExist
	}
	return []byte(content), nil
}
