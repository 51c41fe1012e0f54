"""Data types: conversion, and questions about types and shapes."""
