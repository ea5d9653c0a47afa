package config

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// appWrapperKey is the section of the component in every document.
const appWrapperKey = "appwrapper"

// section is one level of a decoded document. It reads values over those that are there already, and collects what is
// wrong with them.
type section struct {
	tree map[string]any
	path string
	// anyCase finds keys in other spellings too, as the originals did.
	anyCase bool
	taken   map[string]bool
	errs    []error
	odd     []string // keys further down that nobody took, with their path
}

// take returns the value of a key and notes that the key is known. A key in exactly that spelling counts first.
func (s *section) take(name string) (any, bool) {
	if s.taken == nil {
		s.taken = map[string]bool{}
	}
	found := ""
	for _, key := range sortedKeys(s.tree) {
		if key == name || s.anyCase && strings.EqualFold(key, name) {
			s.taken[key] = true
			if found == "" || key == name {
				found = key
			}
		}
	}
	return s.tree[found], found != ""
}

// unknown returns the keys that nobody took, here and further down, with their path.
func (s *section) unknown() []string {
	var keys []string
	for _, key := range sortedKeys(s.tree) {
		if !s.taken[key] {
			keys = append(keys, s.path+"."+key)
		}
	}
	return append(keys, s.odd...)
}

func (s *section) refuse(name string, value any, want string) {
	s.errs = append(s.errs, fmt.Errorf("%s.%s %s: must be %s", s.path, name, shown(value), want))
}

// shown is a value as a message quotes it.
func shown(value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(raw)
}

// child returns the section below a key; null tells one that is explicitly nothing. A key that is absent gives an empty
// section, so that callers need not ask.
func (s *section) child(name string) (child *section, null bool) {
	child = &section{path: s.path + "." + name, anyCase: s.anyCase}
	value, given := s.take(name)
	if given && value == nil {
		return child, true
	}
	if tree, ok := value.(map[string]any); ok {
		child.tree = tree
	} else if given {
		s.refuse(name, value, "an object")
	}
	return child, false
}

// join takes over what a child found, once all of it was read.
func (s *section) join(child *section) {
	s.errs = append(s.errs, child.errs...)
	s.odd = append(s.odd, child.unknown()...)
}

// readScalar reads one value, unless it is absent or null.
func readScalar[T any](s *section, name string, dst *T, want string, parse func(any) (T, bool)) {
	value, _ := s.take(name)
	if value == nil {
		return
	}
	parsed, ok := parse(value)
	if !ok {
		s.refuse(name, value, want)
		return
	}
	*dst = parsed
}

func as[T any](value any) (T, bool) {
	typed, ok := value.(T)
	return typed, ok
}

func (s *section) boolean(name string, dst *bool) {
	readScalar(s, name, dst, "true or false", as[bool])
}

func (s *section) text(name string, dst *string) { readScalar(s, name, dst, "a string", as[string]) }

func (s *section) integer(name string, dst *int32) {
	readScalar(s, name, dst, fmt.Sprintf("a whole number of at most %d", math.MaxInt32), func(value any) (int32, bool) {
		number, ok := value.(json.Number)
		n, err := strconv.ParseInt(string(number), 10, 32)
		return int32(n), ok && err == nil
	})
}

// duration reads nanoseconds, as the originals wrote them, or a Go duration.
func (s *section) duration(name string, dst *time.Duration) {
	readScalar(s, name, dst, `a duration such as "5m", or a whole number of nanoseconds`, parsePeriod)
}

func parsePeriod(value any) (time.Duration, bool) {
	switch value := value.(type) {
	case json.Number:
		n, err := strconv.ParseInt(string(value), 10, 64)
		return time.Duration(n), err == nil
	case string:
		period, err := time.ParseDuration(strings.TrimSpace(value))
		return period, err == nil
	default:
		return 0, false
	}
}

// appWrapper reads the settings of the component. Absent keys leave what is there.
func (s *section) appWrapper(settings *AppWrapper) {
	s.boolean("userRBACAdmissionCheck", &settings.UserRBACAdmissionCheck)
	s.text("schedulerName", &settings.SchedulerName)
	s.text("defaultQueueName", &settings.DefaultQueueName)
	if !s.anyCase { // in documents of the originals the key is one of those that have no effect
		s.text("slackQueueName", &settings.SlackQueueName)
	}
	s.autopilot(settings)
	s.faultTolerance(&settings.FaultTolerance)
}

func (s *section) autopilot(settings *AppWrapper) {
	child, null := s.child("autopilot")
	if null {
		settings.Autopilot = nil
		return
	}
	if child.tree == nil {
		return
	}
	if settings.Autopilot == nil { // an earlier document switched it off
		settings.Autopilot = DefaultAppWrapper().Autopilot
	}
	a := settings.Autopilot
	child.boolean("injectAntiAffinities", &a.InjectAntiAffinities)
	child.boolean("monitorNodes", &a.MonitorNodes)
	if weight, given := child.take("preferNoScheduleWeight"); given && weight == nil {
		a.PreferNoScheduleWeight = nullWeight
	}
	child.integer("preferNoScheduleWeight", &a.PreferNoScheduleWeight)
	taints, _ := child.child("resourceTaints")
	for _, resource := range sortedKeys(taints.tree) {
		a.ResourceTaints[resource] = taints.taints(resource)
	}
	taints.tree = nil // names of resources are data: none is unknown
	child.join(taints)
	s.join(child)
}

// taints reads the list of one resource. Names of resources are data, so they are taken as they are written.
func (s *section) taints(resource string) []NodeTaint {
	list, ok := s.tree[resource].([]any)
	if !ok && s.tree[resource] != nil {
		s.refuse(resource, s.tree[resource], "a list of taints")
	}
	var all []NodeTaint
	for i, item := range list {
		tree, ok := item.(map[string]any)
		if !ok {
			s.refuse(fmt.Sprintf("%s[%d]", resource, i), item, "an object with key, value and effect")
			continue
		}
		one := &section{tree: tree, path: fmt.Sprintf("%s.%s[%d]", s.path, resource, i), anyCase: s.anyCase}
		var taint NodeTaint
		one.text("key", &taint.Key)
		one.text("value", &taint.Value)
		one.text("effect", &taint.Effect)
		switch taint.Effect {
		case "NoExecute", "NoSchedule", "PreferNoSchedule":
		default:
			one.refuse("effect", taint.Effect, "NoExecute, NoSchedule or PreferNoSchedule")
		}
		s.join(one)
		all = append(all, taint)
	}
	return all
}

func (s *section) faultTolerance(f *FaultTolerance) {
	child, _ := s.child("faultTolerance")
	child.duration("admissionGracePeriod", &f.AdmissionGracePeriod)
	child.duration("warmupGracePeriod", &f.WarmupGracePeriod)
	child.duration("failureGracePeriod", &f.FailureGracePeriod)
	child.duration("resetPause", &f.ResetPause)
	child.duration("deletionGracePeriod", &f.DeletionGracePeriod)
	child.duration("gracePeriodCeiling", &f.GracePeriodCeiling)
	child.duration("successTTLCeiling", &f.SuccessTTLCeiling)
	child.integer("retryLimit", &f.RetryLimit)
	s.join(child)
}
