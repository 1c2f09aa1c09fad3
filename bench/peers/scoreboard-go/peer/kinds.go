package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var version = schema.GroupVersion{Group: "vteam.ambient-code", Version: "v1alpha1"}

// The tuned variant's kinds: only the fields that are read.

type repository struct {
	URL string `json:"url,omitempty"`
}

type condition struct {
	Type   string `json:"type,omitempty"`
	Status string `json:"status,omitempty"`
}

type sessionSpec struct {
	Timeout int64        `json:"timeout,omitempty"`
	Repos   []repository `json:"repos,omitempty"`
}

type sessionStatus struct {
	Phase      string      `json:"phase,omitempty"`
	Conditions []condition `json:"conditions,omitempty"`
}

type AgenticSession struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              sessionSpec   `json:"spec,omitempty"`
	Status            sessionStatus `json:"status,omitempty"`
}

type AgenticSessionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AgenticSession `json:"items"`
}

type ProjectSettings struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
}

type ProjectSettingsList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ProjectSettings `json:"items"`
}

func (in *AgenticSession) DeepCopyInto(out *AgenticSession) {
	*out = *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Repos = append([]repository(nil), in.Spec.Repos...)
	out.Status.Conditions = append([]condition(nil), in.Status.Conditions...)
}

func (in *AgenticSession) DeepCopyObject() runtime.Object {
	out := &AgenticSession{}
	in.DeepCopyInto(out)
	return out
}

func (in *AgenticSessionList) DeepCopyObject() runtime.Object {
	out := &AgenticSessionList{TypeMeta: in.TypeMeta, Items: make([]AgenticSession, len(in.Items))}
	in.ListMeta.DeepCopyInto(&out.ListMeta)
	for i := range in.Items {
		in.Items[i].DeepCopyInto(&out.Items[i])
	}
	return out
}

func (in *ProjectSettings) DeepCopyInto(out *ProjectSettings) {
	*out = *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
}

func (in *ProjectSettings) DeepCopyObject() runtime.Object {
	out := &ProjectSettings{}
	in.DeepCopyInto(out)
	return out
}

func (in *ProjectSettingsList) DeepCopyObject() runtime.Object {
	out := &ProjectSettingsList{TypeMeta: in.TypeMeta, Items: make([]ProjectSettings, len(in.Items))}
	in.ListMeta.DeepCopyInto(&out.ListMeta)
	for i := range in.Items {
		in.Items[i].DeepCopyInto(&out.Items[i])
	}
	return out
}

func register(scheme *runtime.Scheme) {
	scheme.AddKnownTypes(version, &AgenticSession{}, &AgenticSessionList{}, &ProjectSettings{}, &ProjectSettingsList{})
	metav1.AddToGroupVersion(scheme, version)
}
