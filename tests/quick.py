"""Which tests `./dev test --quick` leaves out: those that take more of a second than
others, unless they are near to what changed. A new test is quick; one that takes more
than MOST seconds of the processor fails in `--quick` until it is named here.
tests/near/quick_run.py is the plugin of pytest that reads this.
"""

from __future__ import annotations

MOST = 15.0

# the file of tests, wherever it lies, and of it the tests, without `test_`
LEFT_OUT = """
test_affine
    the_steps_that_decide_find_what_all_steps_find
test_affine_split
    every_reachable_accumulator
test_arduino
    arduino_s_own_builder the_sketch_for_an_arm_core the_sketch_prints_its_result
    the_tutorial two_networks_share_one_runtime
test_backends
    c_with_sanitizers cortex_m4
test_behaviour
    a_shared_parameter_is_on_both_devices
    copies_and_launches_overlap_the_work_of_the_cpu
    functions_of_one_name_on_two_devices_do_not_clash
test_binding
    bound_where_views_are other_weights_are_loaded real_models_by_parameters
    ten_instances_read_one_copy
test_blob
    hostile_blobs_are_read_or_refused round_trip
test_block_kernels
    c_equals_numpy
test_board_cli
    another_core_s_code bench_for_scripts_and_people check
    machine_code_is_read_as_objdump_reads_it run
test_board_models
    ad_does_not_fit_the_flash_of_a_microbit bit_equal
    instructions_and_code_are_what_was_asked kws_leaves_half_of_a_microbit_free
    layers_alike_cost_alike optimise_size_keeps_to_its_limits
    sums_as_ends_of_layers_are_equal_on_a_core too_large_for_the_ram_of_a_microbit
    what_is_missing_is_exact
test_board_options
    every_tensor_is_the_same packed_weights_are_unpacked verbs_take_the_options_here_too
test_board_regions
    each_region_lies_in_the_memory_of_its_name
    the_memories_of_boards_hold_what_is_put_there unicorn_has_the_memories_too
test_boards
    a_tree_runs_on_its_board a_tree_with_functions_of_the_user a_tree_with_other_tables
    cmake keyword_spotting_runs_on_its_board meson
test_boxes_on_boards
    boxes_are_the_same
test_c_functions
    weights_stand_where_the_node_has_them
test_canaries
    nothing_is_written_beside_rings
test_chain
    pieces_in_c pieces_on_a_cortex_m4
test_check
    a_missing_interpreter_is_a_note
test_cli
    rows_are_pushed_by_run_debug_and_bench
test_cmake
    alone_tested_and_installed two_networks_share_one_runtime without_hook_and_names
test_comments
    every_kernel_part_function_and_constant_says_what_it_is
test_compare_page
    on_the_command_line the_page
test_compat_tvm
    firmware_runs_on_a_core
test_compressed
    equal_results the_tree_stands_alone
test_crt
    cpp every_line_and_branch_is_tested hook_leaves_by_its_switch no_forbidden_calls
    runtime_is_small sanitizers
test_damaged_builds
    mutations
test_data
    an_array_of_the_only_input_calibrates
test_debug_layers
    the_verb
test_devices
    a_missing_copy_is_a_fault every_split_of_a_real_network layers_anywhere
test_digits
    accuracy equals_its_interpreter the_demo_runs the_generator_runs
test_docs
    page
test_esp_idf
    component_manager the_example_runs two_networks_share_one_runtime
test_executor_weights
    a_library_is_exported_and_loaded exported_bytes_are_the_same_each_time
    several_models_by_name ten_instances_have_one_copy_of_the_weights
    weights_are_late_by_blob_image_and_one_by_one weights_are_shared
    what_cannot_be_shared_says_why
test_faults
    ten_thousand_calls
test_field_nets
    a_net_keeps_to_what_is_asked every_tensor_is_litert_s_by_both_back_ends
    rows_take_hardly_more_ram_on_any_core
test_fit
    a_roomy_board_takes_the_plan_as_it_is its_bits_are_the_same
    kws_fits_a_small_board_without_an_option the_fastest_plan_that_fits_is_taken
    what_the_user_asked_for_is_kept where_none_fits_it_is_said_what_is_large
test_fit_chips
    estimates_beside_what_is_counted
test_folder
    a_build_is_written_over_itself files_of_another_build_that_stay_are_told
    no_file_of_the_user_is_touched
test_function_parameters
    ten_modules_share_them weights_are_set_one_by_one
    weights_that_kernels_arrange_are_replaced
test_functions
    weights_are_given_by_name
test_fuzz
    damaged_files_are_refused
test_general
    numpy_llvm_and_c_agree what_is_no_usual_number
test_generated_c
    build_files_make_an_example_that_runs clean_and_sanitized
    nothing_allocates_or_prints same_bytes_from_another_path_locale_and_hash_seed
    two_models_in_one_image_and_a_cpp_user
test_graph_builder
    any_graph_comes_back
test_graph_executor
    sharing_with_ten_modules_and_the_donor_gone
test_graphjson_errors
    no_graph_crashes_the_reader
test_hard_channels
    by_c_with_sanitizers
test_host
    layers_take_together_what_a_run_takes
test_image
    round_trip_of_any
test_image_c
    connected equal_parameter_images_are_there_once the_page_of_documentation
test_image_in_crt
    python_and_crt_refuse_the_same
test_image_threads
    models_in_threads
test_int16
    by_c_with_sanitizers
test_ir_text
    kernels_are_read_back
test_kernel_table
    the_page_is_what_the_code_says
test_kernels
    c_equals_numpy pieces_of_one_name_are_one_function
test_language_model
    c_and_python_say_the_same clang_compiles_it halves_keep_no_memory_for_what_is_bound
    one_graph_gives_the_same_logits
test_large_graphs
    memory_is_four_times_the_file time_is_near_linear_in_nodes
test_layers
    cases_stay_inside
test_lines_of_sockets
    a_simulated_board_ends_with_its_script
test_linked
    another_crt_does_not_link networks operators real_networks
    what_nobody_uses_is_left_out
test_live_ranges
    inputs_written_over_give_the_same_bits
test_loss
    a_process_dies a_worker_of_dask_dies killed_it_goes_on_where_it_was
test_lz4
    damaged_blocks_are_refused_as_in_c
test_make
    for_another_core
test_manners
    a_reader_that_leaves_early bash_completes boards_are_as_wide_as_there_is_room
    boards_in_a_pipe_are_one_line_each ctrl_c_is_quiet_whenever_it_comes
test_mcdc
    each_condition_decides_alone
test_meson
    from_archives two_networks_share_one_runtime
test_misra
    real_networks the_page_has_the_counts what_is_in_the_tree_has_a_tag_or_a_reason
test_misuse
    stderr_is_closed stdout_is_closed
test_mlperf_tiny
    accuracy_and_performance_behind_a_pty results_are_the_real_numbers
    what_is_wrong_is_told
test_names
    tensors
test_names_ids
    the_same_answers
test_new_board
    meson_builds_for
test_object_file
    a_bare_process_makes_the_same_bytes_anywhere one_name_out_and_few_in
    pairs_of_products_are_one_instruction the_file_says_what_it_is_for
test_odd_models
    both_back_ends_equal_onnx_runtime the_c_has_no_warning
test_on_boards
    a_difference_names_its_layer an_instruction_more_is_counted digits_fit_the_microbit
    every_tensor_by_every_tool_chain floats_are_near ram_beyond_the_board_s_is_a_fault
    the_example_prints_its_self_test the_record_is_what_steps_write
    the_same_bits_as_here ticks_console_and_exit_code
    too_little_ram_is_an_error_of_the_build unicorn_has_the_console_too
test_onnx_bounded
    built_and_checked_from_the_command_line
test_onnx_models
    damaged_digits damaged_models float nhwc_boundary qdq
test_onnx_suite
    a_slice_of_the_cases_is_never_wrong the_standard_runner_takes_the_module
test_optimise_ram
    a_plan_of_hardly_more_bytes_is_taken_if_it_is_faster
    bits_are_the_same_in_no_more_ram networks_take_no_more_ram
    on_a_core_it_is_at_most_twice_the_instructions printed_c_is_equal
    whole_tensors_have_kernels_of_less_scratch with_other_options
test_other_objects
    llvm_makes_code_for_the_system
test_own_samples
    at_the_end_of_a_line from_python labels_in_a_file_of_their_own many_runs
    on_a_simulated_board
test_owned_boards
    a_program_ends_well_where_nobody_answers what_does_not_fit_does_not_fit
test_packages
    every_file_beside_a_main_of_the_users several_networks_in_one_package
test_packaging
    dev_demo_on_a_bare_machine pip_comes_from_the_index the_sdist_gives_the_same_wheel
    wheel_holds_everything_once wheel_works_in_an_empty_environment
test_page
    three_lines
test_parameters
    onnx_weights_have_the_name_and_the_order_of_the_file real_networks
    replaced_values_equal_a_new_build
test_places
    a_board_that_ends_is_an_error a_simulated_board
    another_library_in_flash_is_an_error_with_the_command
test_plan
    ten_thousand_nodes_in_seconds
test_platformio
    the_example_runs two_networks_share_one_runtime
test_preassigned
    any_valid_storage_is_kept_to
test_project
    one_of_it_and_the_command_line_counts_most
test_pushed_rows
    several_inputs_on_a_board vww_runs_in_32_kilobytes
test_python
    long_work_says_how_far_it_is scripts_of_users_have_types the_page_runs
test_quantise
    command every_operator named_layers_in_int16 named_layers_stay_float
    weights_that_can_be_replaced_stay_float
test_quantised
    digits_beside_onnxruntime
test_ram_curve
    of_real_models
test_real_models
    a_second_run_is_never_a_wrong_answer arenas_reach_their_bound
    clang_finds_generated_c_clean every_int8_tensor_equals_litert float_outputs_are_near
    inputs_that_may_be_written_over_make_room instances_are_small_and_reports_complete
    qdq_outputs_equal_integer_kernels qdq_outputs_pass_the_check
    same_bytes_from_another_place self_test_is_clean_under_sanitizers
    struct_is_no_larger_than_reported the_hybrid_file_is_near_both_ways
test_rebuild
    another_model_or_none every_option_is_in_the_report the_header_says_how
    the_same_bytes where_the_project_file_says
test_regions
    buffers_of_connections_need_room_too devices_have_regions_of_their_own
    models_share_the_regions_of_an_image
test_release
    a_release_is_made_of_what_is_committed
test_remote_modules
    instances_share_weights_on_the_board
test_report_page
    many_nodes_are_painted_at_once nobody_is_shut_out numbers_of_a_mobile_net
    numbers_of_real_networks shapes_do_not_overlap
test_reprs
    quantised_says_its_error
test_row_input
    random_graphs_give_the_bits_of_whole_inputs real_networks_in_pieces_of_any_size
test_row_kernels
    rows_are_written_over_by_llvm rows_are_written_over_in_c
test_rows
    every_row_passes_the_hook floats_are_equal integers_are_equal
test_runtime_graph_debug
    remote
test_runtime_module_based_interface
    remove_package_params
test_runtime_rpc
    rpc_errors rpc_large_array rpc_remote_module
test_runtime_sharing
    weights_of_kernels_that_pack_are_shared
test_several_devices
    create_takes_devices_by_their_types
test_several_models
    an_output_is_the_next_input build_files clean_and_sanitized
    equal_constants_and_kernels_are_one every_model_answers_as_it_does_alone
    same_bytes_from_another_path_and_hash_seed turns_are_checked
test_sharing_table
    each_cell
test_site
    a_page_fits_a_phone a_page_shuts_nobody_out every_function_of_the_runtime_is_in_it
    every_name_of_the_package_is_in_it every_option_and_verb_is_in_it
    no_link_leads_nowhere nothing_is_fetched_from_elsewhere the_search_needs_no_server
test_small_int
    cases_on_an_lx106
test_speed
    a_build_takes_three_seconds_as_a_process a_build_takes_two_seconds_after_import
    inspect_takes_a_second_and_a_half large_networks_are_planned_in_seconds
test_stages
    no_cuts_and_no_order_need_less
test_state
    single_steps_are_one_run_of_all
test_stateless
    a_run_without_an_instance threads_each_with_its_own_arena with_parameters_by_address
test_stream
    more_frames_a_run random_networks_over_time
test_sums
    printed_c_equals_numpy
test_sweep_page
    the_page_of_a_sweep
test_systems
    a_console_that_knows_few_characters an_unknown_system_compiles_its_own_library
    no_module_of_posix_is_imported text_is_utf8_with_short_line_ends_on_every_machine
test_table_limits
    as_many_inputs_as_fit
test_tables
    layers_are_different_rows_on_a_narrow_terminal
test_tflite_damage
    damaged_real_models
test_tflite_detection
    what_litert_finds
test_tflite_models
    float_model_is_close int8_model_is_exact
test_transformers
    near_the_float_net
test_tree
    a_device_in_a_thread_under_sanitizers a_tree_runs_on_a_device
    the_example_does_all_with_the_cpu
test_tree_builds
    bits_change_without_the_flag cmake_and_meson_keep_their_flags
    cmake_for_another_core_links_no_example cmake_has_a_self_test_by_choice
    make_beside_an_object make_clean_leaves_what_the_build_wrote
    make_compiles_for_other_cores make_knows_what_has_changed
    meson_for_another_core_links_no_example meson_has_a_self_test_by_choice
test_tree_warnings
    a_user_in_cpp c every_c
test_two_cores
    a_fault_of_the_second_core_ends_the_run cores_work_at_the_same_time
    keyword_spotting_on_two_cores more_jobs_than_the_queue_holds
    the_same_bits_and_what_each_core_does
test_vector_boards
    random_layers
test_vector_kernels
    c_equals_numpy
test_verbs
    check_says_which_back_ends_it_compared verb
test_wheel
    an_old_glibc_is_enough each_is_what_its_system_loads
    macos_11_is_enough_and_arm_is_signed the_same_sources_give_the_same_wheel
    there_is_one_for_each_system this_machine_takes_its_own
test_zephyr
    the_sample_runs the_tutorial two_networks_share_one_runtime
"""

# of tests with many cases, and of folders, those without these words
CASES = {
    "tests/executor/": ("board",),
    "test_a_layer_is_right_and_fast": (
        "12-", "3-", "4-", "5-", "6-", "7-", "9-", "31-", "m55",
    ),
    "test_both_simulators_count_alike": (
        "an385", "stm", "net", "mps2-an5", "sifive", "microbit", "riscv",
    ),
    "test_by_llvm": ("3", "4", "5", "6", "7"),
    "test_calls": ("-clang-", "-DCRT"),
    "test_counts_and_sizes": ("zig", "clang", "microbit", "mps3"),
    "test_digits": ("int",),
    "test_firmware_in_cpp": ("clang",),
    "test_firmware_links_and_runs": ("clang", "params", "aot"),
    "test_its_code_runs": ("rv32i", "rv32emc"),
    "test_its_compiler_takes_the_kernels": (
        "m0plus", "m23", "nodsp", "m85", "rv32i", "emc",
    ),
    "test_llvm": ("onnx-cortex-m4",),
    "test_llvm_equals_numpy": ("int8", "speed"),
    "test_make_keeps_its_flags": ("ziglang", "clang", "words1", "words2", "words3"),
    "test_one_file_of_each_type": ("elements", "moves"),
    "test_softmax_of_int8_gives_int16": ("1.7", "0.02"),
    "test_the_core_gives_the_same_bits": ("pico", "nucleo"),
    "test_the_same_bits_as_here": ("parameters", "numbers", "object"),
}  # fmt: skip


def left_out() -> set[str]:
    """`FILE.py::TEST` of each."""
    found, file = set(), ""
    for line in LEFT_OUT.split("\n"):
        if line.startswith(" "):
            found |= {f"{file}.py::test_{name}" for name in line.split()}
        else:
            file = line
    return found


def is_quick(identity: str, names: set[str]) -> bool:
    """Of a test by pytest's identity; `names` as of left_out()."""
    place, _, case = identity.partition("[")
    test = place.rpartition("/")[2]
    words = CASES.get(test.partition("::")[2], ())
    for folder in CASES:
        if place.startswith(folder):
            words += CASES[folder]
    return test not in names and not any(word in case for word in words)
