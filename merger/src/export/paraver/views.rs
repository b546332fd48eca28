//! Ready views: configurations that Paraver loads beside the trace.

use std::fmt::Write as _;

use super::codes::EventType;
use crate::export::lanes::ActivityKind;

/// What a window shows of a thread.
#[derive(Clone, Copy)]
enum WindowContent {
    /// Its state.
    State,
    /// Only one state: 1 while it holds.
    InState(u32),
    /// The value of its last event of a type.
    Event(EventType),
}

/// A table below a window: rows by columns.
#[derive(Clone, Copy)]
enum Table {
    /// None.
    None,
    /// Time by value of the window.
    Time,
    /// Bytes that each process sent to each other.
    Bytes,
}

/// A view: one file.
pub struct View {
    /// Name of the file.
    pub file: &'static str,
    name: &'static str,
    shows: WindowContent,
    table: Table,
    messages: bool,
    description: &'static str,
}

/// All views.
pub const VIEWS: [View; 8] = [
    View {
        file: "states.cfg",
        name: "States",
        shows: WindowContent::State,
        table: Table::None,
        messages: false,
        description: "What each thread does.",
    },
    View {
        file: "messages.cfg",
        name: "Messages",
        shows: WindowContent::State,
        table: Table::None,
        messages: true,
        description: "What each thread does, and all messages as lines: zoom in to tell one from the other.",
    },
    View {
        file: "roles.cfg",
        name: "Roles",
        shows: WindowContent::Event(EventType::Role),
        table: Table::None,
        messages: false,
        description: "The role of each process: NameNode, DataNode, a task's JVM, ...",
    },
    View {
        file: "phases.cfg",
        name: "Phases of tasks",
        shows: WindowContent::Event(EventType::Activity(ActivityKind::Phase)),
        table: Table::None,
        messages: false,
        description: "Map, shuffle, sort, reduce.",
    },
    View {
        file: "phases-time.cfg",
        name: "Time in phases of tasks",
        shows: WindowContent::Event(EventType::Activity(ActivityKind::Phase)),
        table: Table::Time,
        messages: false,
        description: "How long each task spent in each phase.",
    },
    View {
        file: "messages-by-kind.cfg",
        name: "Messages by kind",
        shows: WindowContent::Event(EventType::Sent),
        table: Table::None,
        messages: false,
        description: "The kind of the last message that each thread sent.",
    },
    View {
        file: "waiting.cfg",
        name: "Waiting",
        shows: WindowContent::InState(3),
        table: Table::None,
        messages: false,
        description: "Where threads wait for an answer, for a block or for map outputs.",
    },
    View {
        file: "connectivity.cfg",
        name: "Connectivity",
        shows: WindowContent::State,
        table: Table::Bytes,
        messages: false,
        description: "Bytes that each process sent to each other.",
    },
];

impl View {
    /// The configuration, in the form of version 3.4.
    pub fn text(&self) -> String {
        let mut text = format!(
            "#ParaverCFG\nConfigFile.Version: 3.4\nConfigFile.NumWindows: 1\nConfigFile.BeginDescription\n{}\n\
             ConfigFile.EndDescription\n\n\n{bar}\n< NEW DISPLAYING WINDOW {name} >\n{bar}\n",
            self.description,
            bar = "#".repeat(80),
            name = self.name,
        );
        let (thread, compose, types, filter) = match self.shows {
            WindowContent::State => ("State As Is", "As Is", "All", None),
            WindowContent::InState(_) => ("State As Is", "Select Range", "All", None),
            WindowContent::Event(kind) => ("Last Evt Val", "As Is", "=", Some(kind)),
        };
        let _ = write!(
            text,
            "window_name {name}\nwindow_type single\nwindow_id 1\nwindow_position_x 100\nwindow_position_y 100\n\
             window_width 1000\nwindow_height 500\nwindow_comm_lines_enabled {messages}\nwindow_flags_enabled false\n\
             window_noncolor_mode true\nwindow_logical_filtered true\nwindow_physical_filtered false\n\
             window_comm_fromto true\nwindow_comm_tagsize true\nwindow_comm_typeval true\nwindow_units Microseconds\n\
             window_maximum_y 16.000000000000\nwindow_minimum_y 0.000000000000\nwindow_compute_y_max true\n\
             window_level {level}\nwindow_scale_relative 1.000000000000\nwindow_end_time_relative 1.000000000000\n\
             window_object appl {{ 1, {{ All }} }}\nwindow_begin_time_relative 0.000000000000\nwindow_open {open}\n\
             window_drawmode draw_maximum\nwindow_drawmode_rows draw_maximum\nwindow_pixel_size 1\n\
             window_labels_to_draw 1\n\
             window_selected_functions {{ 14, {{ {{cpu, Active Thd}}, {{appl, Adding}}, {{task, Adding}}, \
             {{thread, {thread}}}, {{node, Adding}}, {{system, Adding}}, {{workload, Adding}}, {{from_obj, All}}, \
             {{to_obj, All}}, {{tag_msg, All}}, {{size_msg, All}}, {{bw_msg, All}}, {{evt_type, {types}}}, \
             {{evt_value, All}} }} }}\n\
             window_compose_functions {{ 9, {{ {{compose_cpu, As Is}}, {{compose_appl, As Is}}, \
             {{compose_task, As Is}}, {{compose_thread, {compose}}}, {{compose_node, As Is}}, {{compose_system, As Is}}, \
             {{compose_workload, As Is}}, {{topcompose1, As Is}}, {{topcompose2, As Is}} }} }}\n",
            name = self.name,
            messages = self.messages,
            open = matches!(self.table, Table::None),
            level = if matches!(self.table, Table::Bytes) { "task" } else { "thread" },
        );
        if let WindowContent::InState(state) = self.shows {
            let _ = writeln!(
                text,
                "window_semantic_module compose_thread Select Range {{ 2, {{ 1 {state}.000000000000, \
                 1 {state}.000000000000 }} }}"
            );
        }
        if let Some(kind) = filter {
            let _ = writeln!(text, "window_filter_module evt_type 1 {}", kind.number());
            let _ = writeln!(text, "window_filter_module evt_type_label 1 \"{}\"", kind.name());
        }
        text + &self.table_text()
    }

    fn table_text(&self) -> String {
        let (statistic, accumulator) = match self.table {
            Table::None => return String::new(),
            Table::Time => ("Time", "Semantic"),
            Table::Bytes => ("Bytes sent", "Communication"),
        };
        format!(
            "\n< NEW ANALYZER2D >\nAnalyzer2D.Name: {}\nAnalyzer2D.X: 100\nAnalyzer2D.Y: 100\nAnalyzer2D.Width: 1000\n\
             Analyzer2D.Height: 500\nAnalyzer2D.ControlWindow: 1\nAnalyzer2D.DataWindow: 1\n\
             Analyzer2D.Accumulator: {accumulator}\nAnalyzer2D.Statistic: {statistic}\nAnalyzer2D.CalculateAll: True\n\
             Analyzer2D.HideCols: True\nAnalyzer2D.HorizVert: Horizontal\nAnalyzer2D.Color: True\n\
             Analyzer2D.SemanticColor: False\nAnalyzer2D.Zoom: Enabled\nAnalyzer2D.SortCols: False\n\
             Analyzer2D.SortCriteria: Average\n\
             Analyzer2D.AnalysisLimits: Alltrace\nAnalyzer2D.ComputeYScale: True\nAnalyzer2D.Minimum: 0.000000000000\n\
             Analyzer2D.Maximum: 64.000000000000\nAnalyzer2D.Delta: 1.000000000000\n\
             Analyzer2D.ComputeGradient: True\n",
            self.name
        )
    }
}
